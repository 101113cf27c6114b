package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mirador/sir"
)

// covered is a piece of Go code that is executed from its beginning to its end, with what go tool cover counts.
type covered struct{ line, column, endLine, endColumn, count int }

// profile returns what go tool cover counts in the only file of a program.
func profile(t *testing.T, pkg string) (all []covered) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	inside(t, pkg, "go", "build", "-cover", "-covermode=count", "-o", program, ".")
	t.Setenv("GOCOVERDIR", dir)
	inside(t, pkg, program)
	inside(t, pkg, "go", "tool", "covdata", "textfmt", "-i", dir, "-o", filepath.Join(dir, "profile"))
	text, err := os.ReadFile(filepath.Join(dir, "profile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c covered
		var statements int
		if i := strings.LastIndexByte(line, ':'); i > 0 && !strings.HasPrefix(line, "mode:") {
			if _, err := fmt.Sscanf(line[i+1:], "%d.%d,%d.%d %d %d", &c.line, &c.column, &c.endLine, &c.endColumn, &statements, &c.count); err != nil {
				t.Fatal(line, err)
			}
			all = append(all, c)
		}
	}
	return all
}

// countsOf returns what go tool cover counts of loops, their bodies and branches. Empty ones are not counted.
func countsOf(p *sir.Program, all []covered) counts {
	found := counts{}
	before := func(line, column, line2, column2 int) bool { return line < line2 || line == line2 && column <= column2 }
	for r := range p.All() {
		if !isMarked(r) {
			continue
		}
		var first covered
		for _, c := range all {
			switch {
			case r.Kind == sir.Loop:
				if before(c.line, c.column, r.Line, r.Code.Column) && before(r.Line, r.Code.Column, c.endLine, c.endColumn) && c.endLine > 0 {
					first = c
				}
			case before(r.Line, r.Code.Column, c.line, c.column) && before(c.endLine, c.endColumn, r.Code.EndLine, r.Code.EndColumn+1):
				if first.line == 0 || before(c.line, c.column, first.line, first.column) {
					first = c
				}
			}
		}
		if first.line > 0 {
			found[r.ID] = first.count
		}
	}
	return found
}

// TestBranchesAgreeWithCover compares branches, loops and iterations of Go with what go tool cover counts.
func TestBranchesAgreeWithCover(t *testing.T) {
	pkg, err := filepath.Abs("testdata/branching")
	if err != nil {
		t.Fatal(err)
	}
	r := resource(t, filepath.Join(pkg, "main.go"))
	p := read(t, "branching", r)
	want := countsOf(&p, profile(t, pkg))
	t.Setenv("GODEBUG", "asyncpreemptoff=1") // a signal would come between a breakpoint and the step over it
	c := compared{name: "branching", files: []string{"."}}
	for flags, n := range map[string]least{"-gcflags=-N -l": {0, 15, 14, 0}, "-gcflags=": {0, 15, 11, 0}} {
		t.Run(flags, func(t *testing.T) {
			found := c.compare(t, pkg, []outlined{{r.Path, p}}, want, "go", "build", "-trimpath=false", flags)
			n.check(t, found)
		})
	}
}
