package landing

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestReadRuntime finds the place of the goroutine with symbols and without. On Linux for
// x86-64 the runtime's only thread-local variable is directly below the address in fs.
func TestReadRuntime(t *testing.T) {
	dir := t.TempDir()
	for name, flags := range map[string][]string{"with symbols": nil, "stripped": {"-ldflags", "-s -w"}} {
		path := filepath.Join(dir, name)
		args := append(append([]string{"build", "-o", path}, flags...), "../../../linux/testdata/hogs")
		if msg, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, msg)
		}
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := ReadRuntime(f)
		if r == nil || r.Unknown != nil || r.G != -8 || !r.Has(f.Entry) || r.Has(f.Entry+1<<32) {
			t.Errorf("%s: %+v", name, r)
		}
		f.Close()
	}
}

// TestReadNoRuntime reads a file that is not a Go program.
func TestReadNoRuntime(t *testing.T) {
	f, err := elf.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := ReadRuntime(f); r != nil || r.Has(f.Entry) {
		t.Errorf("%+v", r)
	}
}
