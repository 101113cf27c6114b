package fortran

import (
	"os"
	"path/filepath"
	"testing"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// FuzzFortran checks that the regions of any text lie inside the file, and that none of them is lost
// for lying outside of another one.
func FuzzFortran(f *testing.F) {
	for _, name := range []string{"grid.f90", "fixed.f"} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, name == "fixed.f")
	}
	f.Add([]byte("do 1 i=1,2\n!$omp do\n!$omp atomic\nif(a)then;x='&\n&';1 continue\nend"), false)
	f.Add([]byte("\tif(a)2,1\nc$omp end do\n     1\tdo\n#if 0\n#else\n      end"), true)
	f.Fuzz(func(t *testing.T, text []byte, fixed bool) {
		name := "a.f90"
		if fixed {
			name = "a.f"
		}
		file := &outline.File{In: name, Path: name, Text: text}
		var x Facts
		x.Declare(file)
		Parse(file, &x)
		for _, n := range file.Nodes {
			inside(t, n, 0, len(text))
		}
		p := outline.Program("a", []*outline.File{file})
		for _, g := range p.Resources[0].Gaps {
			if g.Line < 1 || g.Column < 1 || g.EndLine < g.Line {
				t.Errorf("a gap %+v", g)
			}
		}
		_ = sir.Program(p)
	})
}

// inside checks that a region lies between two places, as the regions inside it do.
func inside(t *testing.T, n *outline.Node, from, to int) {
	if n.Start < from || n.End > to || n.End <= n.Start {
		t.Fatalf("%s %s from %d to %d is not between %d and %d", n.Kind, n.Name, n.Start, n.End, from, to)
	}
	for _, c := range n.Nodes {
		inside(t, c, n.Start, n.End)
	}
}
