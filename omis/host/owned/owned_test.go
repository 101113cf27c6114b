package owned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stranger is the uid of another user.
const stranger = 65534

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// home returns a directory that no other user can write to, whatever the umask is.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	return dir
}

func TestDirectory(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(dir string) (path string, err error)
		refusal string // "" if none
	}{
		{"one that does not exist", func(dir string) (string, error) {
			return filepath.Join(dir, "a", "b"), nil
		}, ""},
		{"one that this user made", func(dir string) (string, error) {
			return filepath.Join(dir, "d"), os.Mkdir(filepath.Join(dir, "d"), 0o755)
		}, ""},
		{"below a sticky directory", func(dir string) (string, error) {
			return filepath.Join(dir, "d"), os.Chmod(dir, 0o777|fs.ModeSticky)
		}, ""},
		{"by a link of this user", func(dir string) (string, error) {
			return filepath.Join(dir, "link"), errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("d", filepath.Join(dir, "link")))
		}, ""},
		{"below a directory of the user's own group", func(dir string) (string, error) {
			return filepath.Join(dir, "d"), os.Chmod(dir, 0o770)
		}, ""},
		{"one that another user made", func(dir string) (string, error) {
			d := filepath.Join(dir, "d")
			return d, errors.Join(os.Mkdir(d, 0o700), os.Chown(d, stranger, stranger))
		}, "belongs to "},
		{"one that everybody may write to", func(dir string) (string, error) {
			return dir, os.Chmod(dir, 0o777)
		}, "can be written to by other users"},
		{"a sticky directory itself", func(dir string) (string, error) {
			return dir, os.Chmod(dir, 0o777|fs.ModeSticky)
		}, "can be written to by other users"},
		{"below one that everybody may write to", func(dir string) (string, error) {
			return filepath.Join(dir, "d"), os.Chmod(dir, 0o777)
		}, "could replace what is in it"},
		{"below one that a group may write to", func(dir string) (string, error) {
			return filepath.Join(dir, "d"), errors.Join(os.Chown(dir, -1, stranger), os.Chmod(dir, 0o770))
		}, "could replace what is in it"},
		{"below one of another user", func(dir string) (string, error) {
			d := filepath.Join(dir, "his")
			return filepath.Join(d, "d"), errors.Join(os.Mkdir(d, 0o755), os.Chown(d, stranger, stranger))
		}, "could replace what is in it"},
		{"by a link of another user", func(dir string) (string, error) {
			link := filepath.Join(dir, "link")
			return link, errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("d", link), os.Lchown(link, stranger, stranger))
		}, "is a symbolic link of "},
		{"by a link through a directory of another user", func(dir string) (string, error) {
			d := filepath.Join(dir, "his")
			return filepath.Join(dir, "link"), errors.Join(os.MkdirAll(filepath.Join(d, "d"), 0o700), os.Chown(d, stranger, stranger), os.Symlink(filepath.Join(d, "d"), filepath.Join(dir, "link")))
		}, "could replace what is in it"},
		{"a link to itself", func(dir string) (string, error) {
			return filepath.Join(dir, "link"), os.Symlink("link", filepath.Join(dir, "link"))
		}, "too many levels"},
		{"a file", func(dir string) (string, error) {
			return filepath.Join(dir, "f"), os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
		}, "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := c.prepare(home(t))
			must(t, err)
			at, err := Directory(path)
			if c.refusal == "" {
				info, missing := os.Lstat(at)
				if err != nil || missing != nil || !info.IsDir() {
					t.Fatalf("%s: %v, %v", at, err, missing)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%v, want %q", err, c.refusal)
			}
		})
	}
}

// TestMadeDirectoriesArePrivate checks that only this user can access a created
// directory.
func TestMadeDirectoriesArePrivate(t *testing.T) {
	dir := home(t)
	at, err := Directory(filepath.Join(dir, "a", "b"))
	must(t, err)
	for _, path := range []string{at, filepath.Dir(at)} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
	}
	if _, err := Existing(filepath.Join(dir, "c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that does not exist: %v", err)
	}
}

func TestShared(t *testing.T) {
	dir := home(t)
	must(t, os.Chmod(dir, 0o777|fs.ModeSticky), Shared(dir), os.Chmod(dir, 0o777))
	var unsafe *Unsafe
	if err := Shared(dir); !errors.As(err, &unsafe) {
		t.Errorf("a directory in which every user can replace every file: %v", err)
	}
}

func TestTrusted(t *testing.T) {
	dir := home(t)
	must(t, os.Chown(dir, stranger, stranger))
	var unsafe *Unsafe
	if err := Trusted(dir, os.Geteuid()); !errors.As(err, &unsafe) {
		t.Errorf("a stranger's directory: %v", err)
	}
	must(t, Trusted(dir, stranger))
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(path, other string) error
		refusal string // "" if none
	}{
		{"a file of this user", func(path, _ string) error { return os.WriteFile(path, []byte("mine"), 0o600) }, ""},
		{"a link", func(path, other string) error { return os.Symlink(other, path) }, "is a symbolic link"},
		{"another user's file", func(path, _ string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, stranger, stranger))
		}, "belongs to "},
		{"a file that everybody may write to", func(path, _ string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
		}, "can be written to"},
		{"a pipe without a writer", func(path, _ string) error { return unix.Mkfifo(path, 0o600) }, "is not a regular file"},
		{"a directory", func(path, _ string) error { return os.Mkdir(path, 0o700) }, "is not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t)
			path, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
			must(t, os.WriteFile(other, []byte("precious"), 0o600), c.prepare(path, other))
			text, err := ReadFile(path)
			if c.refusal == "" && (err != nil || string(text) != "mine") {
				t.Errorf("%q, %v", text, err)
			}
			if c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
				t.Errorf("%v, want %q", err, c.refusal)
			}
			if f, err := Open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
				f.Close()
			}
			if text, err := os.ReadFile(other); err != nil || string(text) != "precious" {
				t.Errorf("the target of a link contains %q, %v", text, err)
			}
		})
	}
}
