//go:build linux

package persist

import (
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

func TestWhatIsPinnedStays(t *testing.T) {
	data := t.TempDir()
	f, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Clear(link.Link.Close); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.path); err == nil {
			t.Error("the folder is left")
		}
	})
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Pin(f.Path("words")); err != nil {
		t.Fatal(err)
	}
	if err := m.Put(uint32(0), uint64(42)); err != nil {
		t.Fatal(err)
	}
	m.Close()
	again, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Has("words") || !slices.Equal(again.Names(), []string{"words"}) || again.Data() != data {
		t.Errorf("%q of %s", again.Names(), again.Data())
	}
	if m, err = again.Map("words"); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var value uint64
	if err := m.Lookup(uint32(0), &value); err != nil || value != 42 {
		t.Errorf("%d, %v", value, err)
	}
	if !slices.ContainsFunc(All(), func(other *Folder) bool { return *other == *f }) {
		t.Error("it is not among all")
	}
	if err := again.Remove("words", link.Link.Close); err != nil || again.Has("words") {
		t.Errorf("removed: %v", err)
	}
}

// A copy of a data directory has a folder of its own.
func TestFoldersAreNotShared(t *testing.T) {
	one, err := Of(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	two, err := Of(t.TempDir())
	if err != nil || *one == *two {
		t.Errorf("%v and %v, %v", one, two, err)
	}
}
