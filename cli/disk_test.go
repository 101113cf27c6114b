package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/examples/targets"
)

// smallDisk mounts a file system of a few kilobytes and returns its path.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(targets.SharedDir(t), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file that takes all free space of a disk.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return file
}

// TestFullDisk fills the disk of the data directory. Requests are executed and report what could
// not be saved. Nothing is corrupted, even if the gateway is killed and another one starts while
// the disk is full. When there is space again, the journal becomes complete, and a file on the disk
// gets the latest values.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t)
	s := startServe(t, os.Geteuid(), "--data", disk)
	c := startTally(t)
	request := func(region string) string {
		return fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="tally:%s"/><metric name="COUNT"/><process id="*"/></instrreq>`, region)
	}
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", request("work"))
	values := filepath.Join(disk, "values")
	s.mir(t, "tally", strings.Replace(request("work"), `<process`, `<measuring delivery="20" destination="file://`+values+`"/><process`, 1))
	c.says("go")
	filler := fill(t, disk)
	// The last page of the journal's file may still have space for some records.
	said := ""
	for i := 0; i < 100 && said == ""; i++ {
		if out, errs, status := s.mirador(t, request("nap"), "post", "--app", "tally", "-"); status != 0 {
			said = out + errs
		}
	}
	if !strings.Contains(said, "it was done, but will not be known any more if the gateway is killed") || !strings.Contains(said, "no space left") {
		t.Fatalf("a request on a full disk: %q", said)
	}
	eventually(t, "the log says what cannot be delivered, and what a kill would lose", func() bool {
		return strings.Contains(s.logged(), "measurements cannot be delivered, and wait") && strings.Contains(s.logged(), "measurements that wait will be lost, or delivered again")
	})
	if calls := c.says("stop"); s.counted(t) != calls {
		t.Errorf("%d of %d calls are counted", s.counted(t), calls)
	}
	s.kill(t)
	c.says("go")
	s.await(t, s.begin(t))
	if calls := c.says("stop"); s.counted(t) != calls {
		t.Errorf("a gateway that started on a full disk has counted %d of %d calls", s.counted(t), calls)
	}
	if _, errs, status := s.mirador(t, request("nap"), "post", "--app", "tally", "-"); status == 0 {
		t.Errorf("a request succeeds of which no record can be written: %s", errs)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	probes := func() int {
		return strings.Count(wants(t, "--unix-socket", s.socket, "http://mirador/probes"), `"id": "probe-`)
	}
	listed := probes()
	eventually(t, "the journal has all probes", func() bool {
		text, err := os.ReadFile(filepath.Join(disk, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte(`"key":"probe/`)) >= listed
	})
	s.kill(t)
	s.await(t, s.begin(t))
	if n := probes(); n != listed {
		t.Errorf("%d probes of %d are left", n, listed)
	}
	if calls := c.says("stop"); s.counted(t) != calls {
		t.Errorf("%d of %d calls are counted in the end", s.counted(t), calls)
	}
	eventually(t, "the file has the last count", func() bool {
		text, err := os.ReadFile(values)
		return err == nil && strings.HasSuffix(string(text), fmt.Sprintf("value=%q/>\n", strconv.Itoa(s.counted(t)))) &&
			strings.Count(string(text), "\n") == strings.Count(string(text), `<?mirador probe="probe-2" number="`)
	})
	s.must(t, "", "release", "tally")
}
