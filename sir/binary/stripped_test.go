package binary

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"mirador/sir"
)

// TestStrippedFunctions compares the units of a stripped program with readelf's symbols of the
// program before stripping: every function with unwind information is a unit with the same
// address and size.
func TestStrippedFunctions(t *testing.T) {
	for _, name := range []string{"O2", "cxx-O2", "O2-nopie"} {
		t.Run(name, func(t *testing.T) {
			whole := named(t, name)
			stripped := filepath.Join(t.TempDir(), filepath.Base(whole))
			run(t, "strip", "-o", stripped, whole)
			names, sizes, _ := readelfFunctions(t, whole)
			im := open(t, stripped)
			found := map[uint64]bool{}
			for _, u := range program(im).Regions {
				found[u.Entry] = true
				if names[u.Entry] == nil {
					t.Errorf("%s at %#x is no function", u.ID, u.Entry)
				}
				if !strings.HasPrefix(u.Symbol, sir.Unnamed) {
					continue
				}
				if want := sizes[u.Entry]; want != 0 && u.Size != want {
					t.Errorf("%s has %d bytes, want %d", u.ID, u.Size, want)
				}
				if _, err := im.Exits(&u); err != nil && !strings.Contains(err.Error(), "conditional jump") {
					t.Error(err)
				}
			}
			for _, u := range program(open(t, whole)).Regions {
				if _, framed := im.frames().find(u.Entry); framed && !found[u.Entry] && im.elf.Section(".text").Addr <= u.Entry {
					t.Errorf("%s at %#x is no unit of the stripped program", u.Symbol, u.Entry)
				}
			}
		})
	}
}

// TestMiniDebugInfo puts the symbol table of a program into its .gnu_debugdata, as some
// distributions do. The stripped program then has all names.
func TestMiniDebugInfo(t *testing.T) {
	whole, dir := named(t, "O2"), t.TempDir()
	mini, stripped := filepath.Join(dir, "mini"), filepath.Join(dir, "program")
	run(t, "objcopy", "--strip-debug", whole, mini)
	plain, err := os.ReadFile(mini)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "strip", "-o", stripped, whole)
	addSection(t, stripped, packed(t, plain))
	want, got := open(t, whole), open(t, stripped)
	for _, u := range program(want).Regions {
		if v := unit(t, got, u.Symbol); v.Entry != u.Entry || v.Size != u.Size {
			t.Errorf("%s is %#x+%d, want %#x+%d", u.Symbol, v.Entry, v.Size, u.Entry, u.Size)
		}
	}
}

// TestMiniDebugInfoBounded has a .gnu_debugdata that decompresses to more than the limit.
func TestMiniDebugInfoBounded(t *testing.T) {
	stripped := filepath.Join(t.TempDir(), "program")
	run(t, "strip", "-o", stripped, named(t, "O2"))
	addSection(t, stripped, packed(t, make([]byte, maxMiniDebug+1)))
	im := open(t, stripped)
	main, err := openELF(stripped, im.file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := miniDebug(main); err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("miniDebug: %v", err)
	}
}

func packed(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func addSection(t *testing.T, program string, content []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "section")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--add-section", ".gnu_debugdata="+file, program)
}

// TestStrippedGo checks that a stripped Go program has the functions of the same program with symbols.
func TestStrippedGo(t *testing.T) {
	dir := t.TempDir()
	build := func(name string, flags ...string) *Image {
		out := filepath.Join(dir, name, "growing")
		cmd := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), "main.go")...)
		cmd.Dir = "testdata/growing"
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, text)
		}
		return open(t, out)
	}
	whole, stripped := build("whole"), build("stripped", "-ldflags=-s -w")
	same := 0
	for _, u := range program(whole).Regions {
		if !strings.HasPrefix(u.Symbol, "main.") {
			continue
		}
		if v := unit(t, stripped, u.Symbol); v.Size < u.Size {
			t.Errorf("%s has %d bytes, want %d", u.Symbol, v.Size, u.Size)
		}
		same++
	}
	if same == 0 {
		t.Error("the program has no functions of its own")
	}
}
