package measure

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"testing"

	"mirador/sir"
	"mirador/sir/binary"
)

// dumped compiles work.c and returns the code of price as it is compared, and its address.
func dumped(t *testing.T, macros ...string) (string, uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "work")
	args := append([]string{"-g", "-O1", "-o", path, "../../testdata/gate/work.c"}, macros...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := binary.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	program := image.Functions()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := dump{file: f, program: program, seen: map[uint64]bool{}}
	var main sir.Region
	for _, u := range program.Regions {
		if u.Name == "main" {
			main = u
		}
	}
	d.add(main)
	if len(d.seen) < 2 {
		t.Fatalf("main calls price, but only %d functions were compared", len(d.seen))
	}
	return d.text.String(), main.Entry
}

// TestMovedCode checks that moved code is the same, and that a changed callee is not.
func TestMovedCode(t *testing.T) {
	text, entry := dumped(t)
	moved, other := dumped(t, "-DPAD=16")
	if text != moved || entry%Line == other%Line {
		t.Errorf("moved code differs, or is not moved (%#x, %#x):\n%s\n%s", entry, other, text, moved)
	}
	if changed, _ := dumped(t, "-DROUNDS=201"); changed == text {
		t.Error("a change of a callee is not found")
	}
}
