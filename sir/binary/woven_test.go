package binary

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
	"mirador/sir/source"
	"mirador/sir/weave"
)

// woven weaves all regions of a source that can be woven, and writes the result into a file. It returns the regions,
// and why the others are refused.
func woven(t *testing.T, path, out string) (regions []*sir.Region, refused map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := source.Read(t.Context(), "ways", []source.Resource{{In: path, Path: path, Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weave.New("0123456789abcdef", &p, []weave.Source{{Path: path, Language: p.Resources[0].Language, Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	refused = map[string]string{}
	var ids []string
	for r := range p.All() {
		err := w.Check(r.ID)
		if no := (*weave.Refusal)(nil); errors.As(err, &no) {
			refused[r.ID] = no.Why
			continue
		}
		regions, ids = append(regions, r), append(ids, r.ID)
	}
	files, err := w.Weave(ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := out
		if f.Suffix != "" {
			name = strings.TrimSuffix(out, filepath.Ext(out)) + f.Suffix
		}
		if err := os.WriteFile(name, f.Text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return regions, refused
}

// expected returns how often gcov saw a region executed: a region that is a block by the line of its first
// statement, a return and a call by their own, another statement by the one before it.
func expected(r *sir.Region, counts map[int]int) int {
	if strings.HasPrefix(filepath.Ext(r.File), ".f") {
		switch {
		case r.Kind == sir.Call || r.Kind == sir.IO || r.Kind == sir.Return || r.Kind == sir.Stop:
			return counts[r.Code.EndLine]
		case r.Kind == sir.Body || r.Form == "then":
			return counts[r.Line]
		}
	}
	switch r.Kind {
	case sir.Call, sir.Return, sir.Throw, sir.Allocation:
		return counts[r.Line]
	case sir.Function, sir.Method, sir.MainProgram, sir.Subroutine:
		for line := r.Line + 2; ; line++ {
			if n, ok := counts[line]; ok {
				return n
			}
		}
	case sir.Body, sir.Branch, sir.Catch:
		if r.Line == r.Code.EndLine {
			return counts[r.Line]
		}
		return counts[r.Line+1]
	}
	return counts[r.Line-1]
}

// TestWovenAgreesWithGcov checks that woven programs compile without warnings, print what they printed before, and
// pass the beginning and the end of each region as often as gcov counts.
func TestWovenAgreesWithGcov(t *testing.T) {
	for _, c := range []struct {
		path, compiler string
		flags          []string
		least          int // regions that are woven
		refused        map[string]string
	}{
		{"testdata/ways.c", "gcc", []string{"-std=c99", "-pedantic"}, 40, map[string]string{"ways:text/switch1.case1": "behind a label of a switch"}},
		{"testdata/ways.cc", "g++", []string{"-std=c++11", "-pedantic", "-Wshadow"}, 30, map[string]string{"ways:main/loop1/call.add": "temporary objects"}},
		{"testdata/ways.f90", "gfortran", []string{"-std=gnu"}, 60, map[string]string{"ways:__numbers_MOD_square": "is pure", "ways:MAIN__/loop6": "parallel do needs its statement"}},
		{"testdata/ways.f", "gfortran", []string{"-std=legacy", "-Wno-line-truncation", "-Wno-tabs"}, 40, map[string]string{"ways:MAIN__/loop3/loop1": "ends with the same statement"}},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, filepath.Base(c.path))
		regions, refused := woven(t, c.path, file)
		plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "ways")
		run(t, c.compiler, "-J", dir, "-o", plain, c.path)
		want := run(t, plain)
		beside, err := filepath.Glob(filepath.Join(dir, "*.s"))
		if err != nil {
			t.Fatal(err)
		}
		run(t, c.compiler, slices.Concat(c.flags, []string{"-O2", "-no-pie", "-Wall", "-Wextra", "-Werror", "-J", dir, "-o", program, file}, beside)...)
		if got := run(t, program); got != want {
			t.Errorf("%s: the woven program prints %q, not %q", c.path, got, want)
		}
		compareWoven(t, program, regions, covered(t, c.path))
		if len(regions) < c.least {
			t.Errorf("%s: only %d regions can be woven; others: %v", c.path, len(regions), refused)
		}
		for id, why := range c.refused {
			if !strings.Contains(refused[id], why) {
				t.Errorf("%s is refused with %q, want %q", id, refused[id], why)
			}
		}
	}
}

// compareWoven compares how often the regions of a program are begun and ended with gcov's counts of lines.
func compareWoven(t *testing.T, program string, regions []*sir.Region, counts map[int]int) {
	t.Helper()
	im := open(t, program)
	var all []uint64
	for _, r := range regions {
		w := im.Units().ByID(r.ID)
		if w == nil || w.Form != sir.Woven || w.Kind != r.Kind {
			t.Fatalf("%s has %s as %+v", program, r.ID, w)
		}
		all = append(append(all, w.Code.Entries...), w.Code.Exits...)
	}
	passed := hits(t, program, ascending(all))
	sum := func(places []uint64) (n int) {
		for _, at := range places {
			n += passed[at]
		}
		return n
	}
	for _, r := range regions {
		c := im.Units().ByID(r.ID).Code
		if begun, ended, want := sum(c.Entries), sum(c.Exits), expected(r, counts); begun != want || ended != want {
			t.Errorf("%s in line %d is begun %d and ended %d times, gcov says %d", r.ID, r.Line, begun, ended, want)
		}
	}
}

// TestWovenStack checks that a woven region which calls alloca is counted, not timed: a timer would not find its end.
func TestWovenStack(t *testing.T) {
	dir := t.TempDir()
	file, program := filepath.Join(dir, "stack.c"), filepath.Join(dir, "ways")
	const text = `__attribute__((noinline)) int use(char *p, int n) { p[0] = (char)n; return p[n / 2]; }
int f(int n) {
	int s = use((char *)&n, 0);
	for (int i = 0; i < n; i++) s += i;
	if (n > 1) s += use(__builtin_alloca((unsigned)n), n);
	return s;
}
int main(int argc, char **argv) { (void)argv; return f(argc) & 1; }
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	woven(t, file, file)
	run(t, "gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, file)
	im := open(t, program)
	for id, why := range map[string]string{"ways:f/if1": "depends on the way there", "ways:f/if1.then": "the stack pointer is not the same", "ways:f/loop1": "", "ways:f/loop1/body": "", "ways:main": ""} {
		r := im.Units().ByID(id)
		if at, err := im.Entries(r); err != nil || len(at) == 0 {
			t.Errorf("%s begins at %#x, %v", id, at, err)
		}
		if _, err := im.Exits(r); why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("the end of %s: %v, want %q", id, err, why)
		}
	}
}
