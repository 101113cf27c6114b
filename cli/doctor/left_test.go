package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/persist"
)

// pinned creates an object in the kernel that belongs to a new data directory.
func pinned(t *testing.T) (data string, f *persist.Folder) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := persist.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Clear(link.Link.Close); err != nil {
			t.Error(err)
		}
	})
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Pin(f.Path("words")); err != nil {
		t.Fatal(err)
	}
	return data, f
}

// TestSweepRemovesOrphans checks that Sweep removes the objects of a killed gateway whose data
// directory is gone, since no gateway can adopt them, and removes nothing else.
func TestSweepRemovesOrphans(t *testing.T) {
	gone, lost := pinned(t)
	_, kept := pinned(t)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if lost.IsLost(settled) {
		t.Error("a folder that has just changed counts as lost")
	}
	if !lost.IsLost(0) || kept.IsLost(0) {
		t.Fatalf("lost: %v and %v, want true and false", lost.IsLost(0), kept.IsLost(0))
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	start, err := proc.ThreadStart(other.Process.Pid, other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ofOther := func(mounts string) {
		t.Helper()
		if mounts == "" {
			if mounts, err = os.Readlink("/proc/self/ns/mnt"); err != nil {
				t.Fatal(err)
			}
		}
		pids, err := os.Readlink("/proc/self/ns/pid")
		if err != nil {
			t.Fatal(err)
		}
		link := lost.Path("owner")
		if err := errors.Join(os.Remove(link), os.Symlink(fmt.Sprintln(mounts, pids, other.Process.Pid, start), link)); err != nil {
			t.Fatal(err)
		}
	}
	ofOther("")
	if lost.IsLost(0) {
		t.Error("the folder of a gateway that lives counts as lost")
	}
	other.Process.Kill()
	other.Wait()
	ofOther("mnt:[1]")
	if lost.IsLost(0) {
		t.Error("the folder of a gateway with other mounts counts as lost")
	}
	ofOther("")
	if !lost.IsLost(0) {
		t.Error("the folder of a gateway that has ended does not count as lost")
	}
	if of, err := remove([]*persist.Folder{lost}, nil); err != nil || len(of) != 1 || of[0] != gone {
		t.Errorf("%q, %v", of, err)
	}
	if lost.Has("words") || !kept.Has("words") {
		t.Errorf("left: %v and %v, want false and true", lost.Has("words"), kept.Has("words"))
	}
}

// TestLeftNamesADirectoryOnce checks a data directory that was removed and created again: it has
// two folders, and is named once.
func TestLeftNamesADirectoryOnce(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, later := range []string{"first", "second"} {
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := persist.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Clear(func(l link.Link) error { return l.Close() }); err != nil {
				t.Error(err)
			}
		})
		if err := os.Rename(data, filepath.Join(filepath.Dir(data), later)); err != nil { // the folder keeps its inode
			t.Fatal(err)
		}
	}
	named := 0
	for _, f := range abandoned() {
		if f.Data() == data {
			named++
		}
	}
	if named != 2 {
		t.Fatalf("%d folders of %s", named, data)
	}
	if got := left(t.Context()); strings.Count(got.why, data) != 1 {
		t.Errorf("said: %s", got.why)
	}
}
