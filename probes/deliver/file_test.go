package deliver

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// line is what a file has of a document.
func line(probe string, n int) string {
	return fmt.Sprintf("<?mirador probe=%q number=\"%d\" lost=\"0\"?><measurement value=\"%d\"/>\n", probe, n, n)
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTwoProbesShareAFile(t *testing.T) {
	all := OpenQueues(Rules{AnyFile}, newMemory(), quiet())
	path := filepath.Join(t.TempDir(), "values")
	a := parsed(t, "file://"+path+"?sync=true")
	first, err := all.To("probe-1", a, self)
	if err != nil {
		t.Fatal(err)
	}
	second, err := all.To("probe-2", a, self)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		send(first, value(n+1))
		send(second, value(n+1))
	}
	first.Close()
	second.Close()
	if err := all.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := content(t, path)
	for n := range 50 {
		for _, probe := range []string{"probe-1", "probe-2"} {
			if strings.Count(text, line(probe, n+1)) != 1 {
				t.Errorf("the file does not have document %d of %s exactly once", n+1, probe)
			}
		}
	}
	if strings.Count(text, "\n") != 100 || all.files.list[fmt.Sprintf("%d %s", self.UID, a.URI)] != nil {
		t.Errorf("the file has %d lines, want 100, or is still open", strings.Count(text, "\n"))
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for _, document := range strings.Split(strings.TrimSpace(text), "\n") { // each line is a document of its own
		var m struct {
			XMLName xml.Name `xml:"measurement"`
			Value   int      `xml:"value,attr"`
		}
		if err := xml.Unmarshal([]byte(document), &m); err != nil || m.Value == 0 {
			t.Fatalf("%s: %v", document, err)
		}
	}
}

func TestFileIsRotated(t *testing.T) {
	all := OpenQueues(Rules{AnyFile}, nil, quiet())
	path := filepath.Join(t.TempDir(), "values")
	size := len(line("probe-1", 1))
	d := to(t, all, fmt.Sprintf("file://%s?max-size=%d&keep=2", path, 2*size))
	for n := range 7 {
		send(d, value(n+1))
	}
	d.Close()
	if err := all.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": line("probe-1", 7), ".1": line("probe-1", 5) + line("probe-1", 6), ".2": line("probe-1", 3) + line("probe-1", 4)} {
		if got := content(t, path+name); got != want {
			t.Errorf("values%s has %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("too many files are kept")
	}
}

// one writes a document.
func (f *file) one(i item) error {
	_, err := f.write(context.Background(), []item{i})
	return err
}

// TestFileIsRenamed renames the file between two documents, as programs that rotate files do.
func TestFileIsRenamed(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "values"), user: self}
	for n := range 2 {
		if err := f.one(item{Probe: "probe-1", Number: int64(n + 1), Text: value(n + 1).Value}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if err := os.Rename(f.path, f.path+".old"); err != nil {
				t.Fatal(err)
			}
			f.checked = time.Now().Add(-2 * checkEvery)
		}
	}
	f.shut()
	if old, now := content(t, f.path+".old"), content(t, f.path); !strings.Contains(old, `number="1"`) || !strings.Contains(now, `number="2"`) {
		t.Errorf("the old file has %q, the new one %q", old, now)
	}
}

// TestFilesOfOthers checks that a gateway of root opens files with the rights of the user that
// made the request, and that this user cannot make it open a file of root.
func TestFilesOfOthers(t *testing.T) {
	const uid = 65534
	base, err := os.MkdirTemp("/var/tmp", "deliver") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	own, locked, secret := filepath.Join(base, "own"), filepath.Join(base, "locked"), filepath.Join(base, "secret")
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(os.Chmod(base, 0o755), os.Mkdir(own, 0o700), os.Chown(own, uid, uid), os.Mkdir(locked, 0o700), os.WriteFile(secret, []byte("secret"), 0o600))
	must(os.Symlink(secret, filepath.Join(own, "link")), os.Link(secret, filepath.Join(own, "hard")), os.Symlink(locked, filepath.Join(own, "dir")))
	must(syscall.Mkfifo(filepath.Join(own, "fifo"), 0o666), os.Mkdir(filepath.Join(own, "directory"), 0o777))
	must(os.WriteFile(filepath.Join(own, "shared"), nil, 0o666), os.Chmod(filepath.Join(own, "shared"), 0o666))

	nobody := User{UID: uid}
	all := OpenQueues(Rules{AnyFile}, nil, quiet())
	for name, why := range map[string]string{
		"own/link": "symbolic link", "own/dir/x": "symbolic link", "own/hard": "permission denied", "own/fifo": "", "own/directory": "is a directory",
		"own/shared": "belongs to user 0", "locked/x": "permission denied", "secret": "permission denied", "missing/x": "no such file", "x": "permission denied",
	} {
		_, err := all.To("probe-1", parsed(t, "file://"+filepath.Join(base, name)), nobody)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
	path := filepath.Join(own, "values")
	d, err := all.To("probe-1", parsed(t, "file://"+path+"?max-size=100"), nobody)
	must(err)
	for n := range 3 {
		send(d, value(n+1))
	}
	d.Close()
	must(all.Close(t.Context()))
	for _, name := range []string{path, path + ".1"} {
		var st unix.Stat_t
		must(unix.Stat(name, &st))
		if st.Uid != uid {
			t.Errorf("%s belongs to user %d", name, st.Uid)
		}
	}
	if got := content(t, secret); got != "secret" {
		t.Errorf("the secret is %q", got)
	}
	// No thread of the process still has the user's rights.
	probe := filepath.Join(locked, "mine")
	for range 50 {
		must(os.WriteFile(probe, nil, 0o600))
	}
}

func TestUserWithoutRights(t *testing.T) {
	if _, err := (User{UID: -1}).uid(); err == nil || !strings.Contains(err.Error(), "Unix socket") {
		t.Errorf("the error is %v", err)
	}
	if uid, err := self.uid(); err != nil || uid != os.Geteuid() {
		t.Errorf("uid %d, %v", uid, err)
	}
}

// TestDiskIsFull checks that a full disk leaves no part of a document.
func TestDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	f := &file{path: filepath.Join(dir, "values"), user: self}
	defer f.shut()
	long := strings.Repeat("x", 1500)
	var err error
	written := 0
	for n := 1; err == nil && n < 10; n++ {
		if err = f.one(item{Probe: "probe-1", Number: int64(n), Text: long}); err == nil {
			written++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the error is %v", err)
	}
	if got := content(t, f.path); strings.Count(got, "\n") != written || !strings.HasSuffix(got, "\n") {
		t.Errorf("the file has %d bytes, of %d documents", len(got), written)
	}
	last := item{Probe: "probe-1", Number: 10}
	last.Text = strings.Repeat("x", 4096-len(content(t, f.path))-len(last.appendLine(nil)))
	if n, err := f.write(t.Context(), []item{last, {Probe: "probe-1", Number: 11}}); n != 1 || err == nil {
		t.Errorf("of two documents, one of which fits, %d are written: %v", n, err)
	}
	if n, err := f.write(t.Context(), []item{{Probe: "probe-1", Number: 11}}); n != 0 || err == nil {
		t.Errorf("on a disk without a free byte %d documents are written: %v", n, err)
	}
}

// TestTooManyFiles checks that a user cannot take all descriptors of the gateway, and that
// closed files count no more.
func TestTooManyFiles(t *testing.T) {
	all := OpenQueues(Rules{AnyFile}, nil, quiet())
	dir := t.TempDir()
	address := func(n int) Address { return parsed(t, fmt.Sprintf("file://%s/%d", dir, n)) }
	var last Destination
	for n := range mostFiles {
		d, err := all.To(fmt.Sprint("probe-", n), address(n), self)
		if err != nil {
			t.Fatal(err)
		}
		last = d
	}
	if _, err := all.To("probe-x", address(mostFiles), self); err == nil || !strings.Contains(err.Error(), "256 files already") {
		t.Errorf("one file too many: %v", err)
	}
	if _, err := all.To("probe-y", address(0), self); err != nil {
		t.Errorf("a file that is open: %v", err)
	}
	last.Close()
	eventually(t, "there is room again", func() bool {
		_, err := all.To("probe-z", address(mostFiles), self)
		return err == nil
	})
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
