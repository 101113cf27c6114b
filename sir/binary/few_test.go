package binary

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
)

// TestFewUnits compares the units that are found in the symbols of programs with those of an index of all.
func TestFewUnits(t *testing.T) {
	rust := filepath.Join(t.TempDir(), "looping")
	run(t, "rustc", "-g", "-C", "relocation-model=static", "-o", rust, "testdata/looping.rs")
	for _, path := range []string{
		"/bin/bash",
		strings.TrimSpace(run(t, "g++", "-print-file-name=libstdc++.so.6")),
		filepath.Join(strings.TrimSpace(run(t, "go", "env", "GOTOOLDIR")), "asm"),
		rust,
	} {
		im := open(t, path)
		searched := 0
		same := func(what, asked string, got, want []*sir.Region) {
			t.Helper()
			if !slices.EqualFunc(got, want, func(a, b *sir.Region) bool { return a.ID == b.ID && a.Entry == b.Entry && a.Name == b.Name }) {
				t.Fatalf("%s: %s %q: %d regions, want %d", path, what, asked, len(got), len(want))
			}
		}
		p := im.functions()
		for r := range p.All() {
			im.few.searches.Store(0)
			same("id", r.ID, []*sir.Region{im.few.ByID(r.ID)}, []*sir.Region{r})
			if searched%50 == 0 { // each searches all
				same("name", r.Name, im.few.ByName(r.Name), im.index().ByName(r.Name))
				same("symbol", r.Symbol, im.few.ByName(r.Symbol), im.index().ByName(r.Symbol))
				name, _, _ := strings.Cut(r.Name, "(")
				containing := func(all func(func(*sir.Region) bool)) (found []*sir.Region) {
					for r := range all {
						if strings.Contains(r.Name, name) {
							found = append(found, r)
						}
					}
					return found
				}
				same("part of a name", name, containing(im.few.Resembling(name)), containing(p.All()))
			}
			searched++
		}
		if im.few.ByID(im.few.Base()+":") != nil || im.few.ByID("main") != nil || len(im.few.ByName("not_there")) != 0 {
			t.Errorf("%s: units that are not there", path)
		}
	}
}
