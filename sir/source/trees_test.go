package source

import (
	"bytes"
	"flag"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mirador/mir/conform"
	"mirador/sir"
)

// more is set by make trees.
var more = flag.Bool("trees", false, "read more programs of others, and all files of Go's standard library and tools")

// TestMoreSourceTrees reads further programs, which scripts/sourcetrees names: the regions are sound.
func TestMoreSourceTrees(t *testing.T) {
	names := []string{"minpack"}
	if *more {
		names = moreTrees
	}
	out, err := exec.Command("../../scripts/sourcetrees", names...).Output()
	if err != nil {
		t.Fatalf("scripts/sourcetrees: %v", err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			resources := tree(t, filepath.Join(strings.TrimSpace(string(out)), name))
			p := read(t, name, resources...)
			count, gaps := sound(t, &p, resources), 0
			for _, r := range p.Resources {
				gaps += len(r.Gaps) + r.MoreGaps
			}
			valid(t, &p)
			t.Logf("%d files, %d gaps, regions: %v", len(resources), gaps, count)
			if len(resources) == 0 || len(count) < 3 {
				t.Errorf("%d files have %v", len(resources), count)
			}
		})
	}
}

var moreTrees = []string{"zlib", "libxml2", "libjsoncpp", "tinyxml2", "libcommons-lang3-java", "lapack"}

// valid checks a structure against the schema and the DTD of structure documents.
func valid(t *testing.T, p *sir.Program) {
	t.Helper()
	const units = 100 // of a document, because the validator has a limit
	for from := 0; from < len(p.Regions); from += units {
		part := *p
		part.Regions = p.Regions[from:min(from+units, len(p.Regions))]
		var out bytes.Buffer
		if err := sir.Encode(&out, &sir.Structure{Programs: []sir.Program{part}}); err != nil {
			t.Fatal(err)
		}
		if err := conform.Check(true, out.Bytes()); err != nil {
			t.Fatalf("%s, from %s on: %v\n%.300s", p.Path, part.Regions[0].ID, err, out.Bytes())
		}
		if !*more { // the rest takes a minute
			return
		}
	}
}

// TestSourceTrees reads programs of others in C, C++, Java and Fortran, each as one program: the regions
// are sound, and most is understood.
func TestSourceTrees(t *testing.T) {
	out, err := exec.Command("../../scripts/sourcetrees").Output()
	if err != nil {
		t.Fatalf("scripts/sourcetrees: %v", err)
	}
	cache := strings.TrimSpace(string(out))
	for name, want := range map[string]struct {
		broken int // files of which something is not understood: macros get types and operators
		least  map[sir.Kind]int
	}{
		"lua5.4":         {30, map[sir.Kind]int{sir.Function: 900, sir.Loop: 300, sir.Switch: 50, sir.Call: 5000}},
		"leveldb":        {12, map[sir.Kind]int{sir.Class: 80, sir.Method: 700, sir.Loop: 240, sir.Call: 4000}},
		"libjsoup-java":  {0, map[sir.Kind]int{sir.Class: 100, sir.Method: 1500, sir.Loop: 150, sir.Try: 30}},
		"minpack":        {0, map[sir.Kind]int{sir.Subroutine: 20, sir.Loop: 190}},
		"netcdf-fortran": {5, map[sir.Kind]int{sir.Function: 300, sir.Subroutine: 200, sir.IO: 300, sir.If: 800}},
	} {
		t.Run(name, func(t *testing.T) {
			resources := tree(t, filepath.Join(cache, name))
			p := read(t, name, resources...)
			broken := 0
			for _, r := range p.Resources {
				for _, g := range r.Gaps {
					if strings.Contains(g.Reason, "understood") || strings.Contains(g.Reason, "missing") {
						broken++
						t.Logf("%s:%d: %s", r.In, g.Line, g.Reason)
						break
					}
				}
			}
			if broken > want.broken {
				t.Errorf("%d of %d files are not understood completely", broken, len(resources))
			}
			for kind, n := range sound(t, &p, resources) {
				want.least[kind] -= n
			}
			valid(t, &p)
			for kind, n := range want.least {
				if n > 0 {
					t.Errorf("there are %d fewer regions of the kind %s", n, kind)
				}
			}
		})
	}
}

func tree(t *testing.T, dir string) (resources []Resource) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && Language(path) != "" {
			resources = append(resources, resource(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return resources
}
