package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"

	"mirador/omis/place/kernel/pins"
)

// A data directory that was removed and made anew has left two folders, and is named once.
func TestLeftNamesADirectoryOnce(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, later := range []string{"first", "second"} {
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := pins.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Clear(func(l link.Link) error { return l.Close() }); err != nil {
				t.Error(err)
			}
		})
		if err := os.Rename(data, filepath.Join(filepath.Dir(data), later)); err != nil { // it keeps its inode
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
