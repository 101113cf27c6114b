package binary

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

// broken is a breakpoint of gdb: how often it stopped, and where it stands.
type broken struct {
	hits  int
	spots []spot
}

type spot struct {
	addr     uint64
	function string
}

// breaks runs a program under gdb with breakpoints.
func breaks(t *testing.T, program string, at []string) []broken {
	t.Helper()
	script := "set breakpoint pending off\nset confirm off\nhandle SIGURG nostop noprint pass\n"
	for i, a := range at {
		script += fmt.Sprintf("break %s\nignore %d 100000000\n", a, i+1)
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script+"run > /dev/null\ninfo breakpoints\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, "gdb", "-nx", "-batch", "-x", file, program)
	found := make([]broken, len(at))
	row, times := regexp.MustCompile(`^(\d+)(\.\d+)?\s`), regexp.MustCompile(`already hit (\d+) time`)
	place := regexp.MustCompile(`(0x[0-9a-f]{16}) in (.+) at .+:\d+`)
	n := 0
	for line := range strings.Lines(out[strings.LastIndex(out, "Num "):]) {
		if m := row.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
			n--
		}
		if m := place.FindStringSubmatch(line); m != nil {
			addr, _ := strconv.ParseUint(m[1], 0, 64)
			found[n].spots = append(found[n].spots, spot{addr, m[2]})
		}
		if m := times.FindStringSubmatch(line); m != nil {
			found[n].hits, _ = strconv.Atoi(m[1])
		}
	}
	return found
}

// TestBreakpoints compares breakpoints at the entries of functions and loops with those that gdb sets at their lines. A
// breakpoint of gdb at a line may stand inside a loop, where it stops at each iteration.
func TestBreakpoints(t *testing.T) {
	t.Setenv("GODEBUG", "asyncpreemptoff=1") // gdb counts a hit twice that a signal interrupts
	built := func(name, compiler string, args ...string) *Image {
		program := filepath.Join(t.TempDir(), name)
		run(t, compiler, append(args, "-o", program)...)
		return open(t, program)
	}
	equal := 0
	for file, im := range map[string]*Image{
		"loops.c":     built("c", "gcc", "-g", "-no-pie", "testdata/loops.c"),
		"lines.cc":    built("c++", "g++", "-g", "-no-pie", "testdata/lines.cc"),
		"main.go":     builtGo(t, "looping"),
		"looping.f90": built("fortran", "gfortran", "-g", "-no-pie", "-J", t.TempDir(), "testdata/looping.f90"),
		"looping.rs":  built("rust", "rustc", "-g", "-C", "relocation-model=static", "testdata/looping.rs"),
	} {
		regions := entered(t, im, file)
		var at []string
		for i := range regions {
			s := stopsOf(&regions[i])[0]
			at = append(at, fmt.Sprintf("*%#x%s", s.addr, s.condition()), fmt.Sprintf("%s:%d", file, regions[i].Line))
		}
		all := breaks(t, im.Path(), at)
		for i, r := range regions {
			ours, theirs := all[2*i], all[2*i+1]
			one := func(s spot) bool { return s.function == ours.spots[0].function }
			within := func(s spot) bool {
				return slices.ContainsFunc(r.Code.Ranges, func(p sir.Range) bool { return p.Low <= s.addr && s.addr < p.High })
			}
			switch {
			case ours.hits == theirs.hits && slices.ContainsFunc(theirs.spots, one):
				equal++
			case r.Kind == sir.Loop && slices.ContainsFunc(theirs.spots, within):
			case len(theirs.spots) > 1 && slices.ContainsFunc(theirs.spots, one): // a template
			default:
				t.Errorf("%s in line %d: %+v, the breakpoint of gdb: %+v", r.ID, r.Line, ours, theirs)
			}
		}
	}
	if equal < 65 {
		t.Errorf("%d breakpoints stop as often as those of gdb", equal)
	}
}

// entered returns the functions and loops in a source file that have one entry. The functions get their code.
func entered(t *testing.T, im *Image, file string) (regions []sir.Region) {
	for _, u := range program(im).Regions {
		if filepath.Base(u.File) != file || im.elf.Section(".gopclntab") != nil && !strings.HasPrefix(u.Symbol, "main.") {
			continue
		}
		inside, err := im.Inside(t.Context(), &u)
		if err != nil {
			t.Error(err)
		}
		at, err := im.Entries(&u)
		if err != nil {
			t.Error(err)
		}
		u.Code = &sir.Code{Entries: at}
		whole := sir.Program{Regions: append([]sir.Region{u}, inside...)}
		for r := range whole.All() {
			if (r.Kind == sir.Function || r.Kind == sir.Loop) && len(r.Code.Entries) == 1 {
				regions = append(regions, *r)
			}
		}
	}
	return regions
}
