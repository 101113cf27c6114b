package binary

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// builtGo compiles a Go program.
func builtGo(t *testing.T, folder string, flags ...string) *Image {
	t.Helper()
	out := filepath.Join(t.TempDir(), folder)
	args := append([]string{"build", "-o", out}, flags...)
	if msg, err := exec.Command("go", append(args, "./testdata/"+folder)...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	im, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestEnteredBehindStackCheck compares with objdump: a function that calls runtime.morestack
// is entered after the branch to that call, any other function at its entry.
func TestEnteredBehindStackCheck(t *testing.T) {
	im := builtGo(t, "growing")
	code := disassembly(t, im.Path())
	checked, others, wrong := 0, 0, 0
	for _, u := range program(im).Regions {
		i, ok := slices.BinarySearchFunc(code, u.Entry, func(l listed, a uint64) int { return int(int64(l.addr - a)) })
		if !ok || u.Size == 0 {
			continue
		}
		grows, jbe := false, uint64(0)
		for k := i; k < len(code) && code[k].addr < u.Entry+u.Size; k++ {
			grows = grows || code[k].op == "call" && strings.Contains(code[k].args, "<runtime.morestack")
			if jbe == 0 && code[k].op == "jbe" {
				jbe = code[k+1].addr
			}
		}
		want := u.Entry
		if grows {
			checked++
			want = jbe
		} else {
			others++
		}
		got, err := im.entered(&u)
		if err != nil || got != want {
			if wrong++; wrong < 10 {
				t.Errorf("%s at %#x is entered at %#x (%v), want %#x", u.Symbol, u.Entry, got, err, want)
			}
		}
	}
	if wrong > 0 || checked < 500 || others < 100 {
		t.Errorf("%d functions with a check, %d without, %d wrong", checked, others, wrong)
	}
}

// TestEnteredElsewhere checks that programs in other languages are entered at their entries.
func TestEnteredElsewhere(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) {
		for _, u := range program(im).Regions {
			if got, err := im.entered(&u); err != nil || got != u.Entry {
				t.Fatalf("%s at %#x is entered at %#x (%v)", u.Symbol, u.Entry, got, err)
			}
		}
	})
}
