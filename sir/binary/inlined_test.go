package binary

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

// everywhere returns all code of a function: all places where it is inlined, and its own if it has some.
func everywhere(t *testing.T, im *Image, name string) (*sir.Region, error) {
	for _, u := range program(im).Regions {
		if u.Name == name {
			return im.Whole(t.Context(), &u)
		}
	}
	return im.Inlined(t.Context(), name)
}

// compareInlined counts all places where functions are inlined. All counts must be those that are wanted, and as
// many functions as known must not be refused.
func compareInlined(t *testing.T, im *Image, want map[string]int, known int) {
	t.Helper()
	var regions []sir.Region
	for name := range want {
		r, err := everywhere(t, im, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r != nil {
			regions = append(regions, *r)
		}
	}
	agree := 0
	for _, c := range count(t, im.Path(), regions) {
		switch {
		case c.Code.Uncounted != "":
			t.Logf("%s: %s", c.Name, c.Code.Uncounted)
		case c.hits != want[c.Name]:
			t.Errorf("%s is counted %d times, want %d", c.Name, c.hits, want[c.Name])
		default:
			agree++
		}
	}
	if agree < known {
		t.Errorf("%d functions are counted, want %d", agree, known)
	}
}

// TestInlinedByGcc compares with gcov, which counts the first statements of the functions.
func TestInlinedByGcc(t *testing.T) {
	const source = "testdata/inlined.c"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	counts, want := covered(t, source), map[string]int{"fill": 26}
	first := regexp.MustCompile(`/\* counted (\w+) \*/`)
	for i, line := range strings.Split(string(text), "\n") {
		if m := first.FindStringSubmatch(line); m != nil && m[1] != "clamp" { // gcc -O1 makes it part of an expression in some places
			want[m[1]] = counts[i+1]
		}
	}
	for flags, known := range map[string]int{"-O1": 10, "-O2": 10, "-O3 -funroll-loops": 7} {
		program := filepath.Join(t.TempDir(), "inlined")
		run(t, "gcc", append(strings.Fields(flags), "-g", "-no-pie", "-o", program, source)...)
		compareInlined(t, open(t, program), want, known)
	}
}

// calls returns what a program prints of how often it calls functions.
func calls(t *testing.T, program string, names ...string) map[string]int {
	t.Helper()
	cmd := exec.Command(program)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	numbers := regexp.MustCompile(`\d+`).FindAllString(errs.String(), -1)
	for i, name := range names {
		want[name], _ = strconv.Atoi(numbers[i])
	}
	return want
}

func TestInlinedByGo(t *testing.T) {
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	im := builtGo(t, "inlining")
	compareInlined(t, im, calls(t, im.Path(), "main.square", "main.clamp", "main.digits", "main.twice", "main.(*stack).push", "main.even"), 5)
}

func TestInlinedByRust(t *testing.T) {
	for level, known := range map[string]int{"0": 4, "2": 1} {
		program := filepath.Join(t.TempDir(), "inlining")
		run(t, "rustc", "-g", "-C", "opt-level="+level, "-C", "relocation-model=static", "-o", program, "testdata/inlining.rs")
		want := calls(t, program, "inlining::square", "inlining::clamp", "inlining::digits", "inlining::twice")
		compareInlined(t, open(t, program), want, known)
	}
}

// TestInlinedInside finds instances among the regions inside a function.
func TestInlinedInside(t *testing.T) {
	program := filepath.Join(t.TempDir(), "inlined")
	run(t, "gcc", "-O1", "-g", "-o", program, "testdata/inlined.c")
	im := open(t, program)
	u := unit(t, im, "rows")
	regions, err := im.Inside(t.Context(), &u)
	if err != nil {
		t.Fatal(err)
	}
	p := sir.Program{Regions: regions}
	found := map[string]*sir.Region{}
	for r := range p.All() {
		found[r.ID] = r
	}
	for id, line := range map[string]int{"inlined:rows/inlined.fill": 81, "inlined:rows/inlined.fill~2": 88, "inlined:rows/loop2/inlined.twice": 83} {
		if r := found[id]; r == nil || r.Kind != sir.Inlined || r.Line != line || r.Code.Uncounted != "" || len(r.Code.Entries) == 0 {
			t.Errorf("%s: %+v", id, r)
		}
	}
}
