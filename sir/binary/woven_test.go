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
	texts, err := w.Weave(ids)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, texts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	return regions, refused
}

// expected returns how often gcov saw a region executed: a region that is a block by the line of its first
// statement, a return and a call by their own, another statement by the one before it.
func expected(r *sir.Region, counts map[int]int) int {
	switch r.Kind {
	case sir.Call, sir.Return:
		return counts[r.Line]
	case sir.Function:
		return counts[r.Line+2]
	case sir.Body, sir.Branch, sir.Catch:
		if r.Line == r.Code.EndLine {
			return counts[r.Line]
		}
		return counts[r.Line+1]
	}
	return counts[r.Line-1]
}

// TestWovenAgreesWithGcov checks that a woven program compiles without warnings, prints what it printed before, and
// passes the beginning and the end of each region as often as gcov counts.
func TestWovenAgreesWithGcov(t *testing.T) {
	const path = "testdata/ways.c"
	dir := t.TempDir()
	file := filepath.Join(dir, "ways.c")
	regions, refused := woven(t, path, file)
	plain := filepath.Join(dir, "plain")
	run(t, "gcc", "-o", plain, path)
	want, counts := run(t, plain), covered(t, path)
	for _, flags := range [][]string{{"-O0", "-std=c99", "-pedantic"}, {"-O2"}} {
		program := filepath.Join(dir, "ways")
		run(t, "gcc", slices.Concat(flags, []string{"-no-pie", "-Wall", "-Wextra", "-Werror", "-o", program, file})...)
		if got := run(t, program); got != want {
			t.Errorf("%v: the woven program prints %q, not %q", flags, got, want)
		}
		im := open(t, program)
		var all []uint64
		for _, r := range regions {
			if w := im.Index().ByID(r.ID); w == nil || w.Form != sir.Woven || w.Kind != r.Kind {
				t.Fatalf("%v: the program has %s as %+v", flags, r.ID, w)
			} else {
				all = append(append(all, w.Code.Entries...), w.Code.Exits...)
			}
		}
		if flags[0] == "-O0" {
			continue
		}
		passed := hits(t, program, ascending(all))
		sum := func(places []uint64) (n int) {
			for _, at := range places {
				n += passed[at]
			}
			return n
		}
		for _, r := range regions {
			c := im.Index().ByID(r.ID).Code
			if begun, ended, want := sum(c.Entries), sum(c.Exits), expected(r, counts); begun != want || ended != want {
				t.Errorf("%v: %s in line %d is begun %d and ended %d times, gcov says %d", flags, r.ID, r.Line, begun, ended, want)
			}
		}
	}
	if len(regions) < 40 {
		t.Errorf("only %d regions can be woven; others: %v", len(regions), refused)
	}
	if why := refused["ways:text/switch1.case1"]; !strings.Contains(why, "behind a label of a switch") {
		t.Errorf("a label of a switch: %q", why)
	}
}
