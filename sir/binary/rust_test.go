package binary

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
)

var counter = regexp.MustCompile(`// (before|inside) (\w+)`)

// ownCounts returns what a program counts itself, by the comments of its source.
func ownCounts(t *testing.T, source string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	counting := counter.ReplaceAllStringFunc(string(text), func(place string) string {
		places = append(places, strings.TrimPrefix(place, "// "))
		return fmt.Sprintf("COUNTS[%d].fetch_add(1, std::sync::atomic::Ordering::Relaxed);", len(places)-1)
	})
	end := strings.LastIndexByte(counting, '}')
	counting = fmt.Sprintf("%s    eprintln!(\"{COUNTS:?}\");\n}\nstatic COUNTS: [std::sync::atomic::AtomicUsize; %d] = [const { std::sync::atomic::AtomicUsize::new(0) }; %[2]d];\n",
		counting[:end], len(places))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "counting.rs"), []byte(counting), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "rustc", "--edition=2021", "-o", filepath.Join(dir, "counting"), filepath.Join(dir, "counting.rs"))
	out := run(t, "sh", "-c", filepath.Join(dir, "counting")+" 2>&1 >/dev/null")
	var found []int
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != len(places) {
		t.Fatal(out, err)
	}
	counts := map[string]int{}
	for i, place := range places {
		counts[place] = found[i]
	}
	return counts
}

// TestLoopsOfRustAgree compares loops and iterations with what the program counts itself: no count differs. least are the
// numbers of loops and of bodies that must be counted.
func TestLoopsOfRustAgree(t *testing.T) {
	const source = "testdata/counting.rs"
	want := ownCounts(t, source)
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if _, name, ok := strings.Cut(line, "// loop "); ok {
			lines[i+1] = name
		}
	}
	for level, least := range map[string][2]int{"0": {9, 8}, "2": {2, 0}} {
		program := filepath.Join(t.TempDir(), "counting")
		run(t, "rustc", "--edition=2021", "-g", "-C", "opt-level="+level, "-C", "relocation-model=static", "-o", program, source)
		im := open(t, program)
		found := map[string][]sir.Region{}
		for _, u := range functionsOf(im, "counting.rs") {
			regions, err := im.Inside(t.Context(), &u)
			if err != nil {
				t.Error(err)
			}
			p := sir.Program{Regions: regions}
			for r := range p.All() {
				if name := lines[r.Line]; name != "" && filepath.Base(r.File) == "counting.rs" && (r.Kind == sir.Loop || r.Kind == sir.Body) {
					key := map[sir.Kind]string{sir.Loop: "before ", sir.Body: "inside "}[r.Kind] + name
					found[key] = append(found[key], *r)
				}
			}
		}
		var all []sir.Region
		var keys []string
		for key, list := range found {
			if len(list) == 1 && list[0].Code.Uncounted == "" {
				all, keys = append(all, list[0]), append(keys, key)
			}
		}
		agree := [2]int{}
		for i, r := range count(t, program, all) {
			if r.hits != want[keys[i]] {
				t.Errorf("-C opt-level=%s: %s in line %d (%s) is counted %d times, the program says %d: %+v", level, r.ID, r.Line, keys[i], r.hits, want[keys[i]], r.Code)
				continue
			}
			agree[slices.Index([]string{"before", "inside"}, strings.Fields(keys[i])[0])]++
		}
		if agree[0] < least[0] || agree[1] < least[1] {
			t.Errorf("-C opt-level=%s: %v are equal, want %v", level, agree, least)
		}
	}
}

// functionsOf returns the functions of a file.
func functionsOf(im *Image, file string) []sir.Region {
	return slices.DeleteFunc(slices.Clone(program(im).Regions), func(u sir.Region) bool { return filepath.Base(u.File) != file })
}
