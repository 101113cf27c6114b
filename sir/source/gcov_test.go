package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
	"mirador/sir/binary"
)

// compared is a program of others. Some of its files are compared with gcov.
type compared struct {
	name   string
	files  []string // that are compared
	others []string
	flags  []string
	args   []string // with which it runs
}

// counts has what gcov counts of regions, by their ids.
type counts map[string]int

// outlined is a source with its structure.
type outlined struct {
	path string
	p    sir.Program
}

// counted compiles a program with marks, runs it, and returns what gcov counts.
func (c *compared) counted(t *testing.T, tree string) (found counts, sources []outlined) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(tree)); err != nil {
		t.Fatal(err)
	}
	lines := map[string]map[string]int{}
	for _, f := range c.files {
		text, err := os.ReadFile(filepath.Join(tree, f))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read(t.Context(), c.name, []Resource{{In: f, Path: filepath.Join(tree, f), Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, outlined{filepath.Join(tree, f), p})
		more, at := marked(&p, string(text))
		lines[f] = at
		if err := os.WriteFile(filepath.Join(dir, f), []byte(more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c.language() == "fortran" {
		c = c.withMark(t, dir)
	}
	c.build(t, dir, filepath.Join(dir, "program"), gnu[c.language()], "-O0", "--coverage", "-fprofile-update=single")
	passes(t, dir, append([]string{filepath.Join(dir, "program")}, c.args...), nil)
	found = counts{}
	for _, f := range c.files {
		data := "program-" + strings.TrimSuffix(filepath.Base(f), filepath.Ext(f)) + ".gcda"
		covered := gcov(t, dir, data, filepath.Base(f))
		for id, line := range lines[f] {
			if n, ok := covered[line]; ok {
				found[id] = n
			}
		}
	}
	return found, sources
}

// gcov returns the counts of the lines of a source.
func gcov(t *testing.T, dir, data, source string) map[int]int {
	t.Helper()
	var report struct {
		Files []struct {
			File  string
			Lines []struct {
				Number int `json:"line_number"`
				Count  int
			}
		}
	}
	if err := json.Unmarshal([]byte(inside(t, dir, "gcov", "--json-format", "--stdout", data)), &report); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, f := range report.Files {
		if filepath.Base(f.File) == source {
			for _, l := range f.Lines {
				counts[l.Number] += l.Count
			}
		}
	}
	return counts
}

// inside runs a command in a folder.
func inside(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var errs strings.Builder
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%.2000s", argv, err, errs.String())
	}
	return string(out)
}

func (c *compared) build(t *testing.T, dir, program string, compiler ...string) {
	t.Helper()
	if compiler[0] == "go" {
		inside(t, dir, append(compiler, "-o", program, ".")...)
		return
	}
	if c.language() == "fortran" {
		compiler = append(slices.Clone(compiler), "-J", filepath.Dir(program))
	}
	argv := slices.Concat(compiler, c.flags, []string{"-w", "-no-pie", "-o", program}, c.others, c.files)
	inside(t, dir, append(argv, "-lm", "-ldl")...)
}

// tally has how many regions of a program agree with gcov.
type tally struct {
	equal, missing, wrong int
	why                   map[string]int
}

func (y *tally) String() string {
	return fmt.Sprintf("%d equal, %d missing, %d wrong", y.equal, y.missing, y.wrong)
}

// least has numbers of regions that are counted as by gcov.
type least struct{ branches, loops, bodies, scopes int }

func (n least) check(t *testing.T, found map[sir.Kind]*tally) {
	t.Helper()
	equal := func(k sir.Kind) int {
		if found[k] == nil {
			return 0
		}
		return found[k].equal
	}
	if is := (least{equal(sir.Branch), equal(sir.Loop), equal(sir.Body), equal(sir.Scope)}); is.branches < n.branches || is.scopes < n.scopes || is.loops < n.loops || is.bodies < n.bodies {
		t.Errorf("%+v are equal, want %+v", is, n)
	}
}

// measured is a region of the program with what gcov counts.
type measured struct {
	sir.Region
	want int
}

// compare counts the regions of a program as a compiler builds it, and compares with gcov.
func (c *compared) compare(t *testing.T, tree string, sources []outlined, want counts, compiler ...string) map[sir.Kind]*tally {
	t.Helper()
	program := filepath.Join(t.TempDir(), c.name)
	c.build(t, tree, program, compiler...)
	im, err := binary.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	var all []measured
	var stops []stop
	for _, s := range sources {
		for choice := range s.p.All() {
			for i := range choice.Regions {
				b := &choice.Regions[i]
				n, ok := want[b.ID]
				of := choice
				switch {
				case !ok:
					continue
				case b.IsStatement():
					of = nil
				case b.Kind != sir.Branch || choice.Kind != sir.If && choice.Kind != sir.Switch:
					continue
				}
				r, err := im.Branch(t.Context(), of, b)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, measured{*r, n})
			}
		}
	}
	all = append(all, loopsByPosition(t, im, sources, want)...)
	for _, m := range all {
		for _, a := range m.Code.Entries {
			stops = append(stops, stop{a, m.Code.When[a]})
		}
	}
	slices.SortFunc(stops, func(a, b stop) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.when, b.when)) })
	stops = slices.Compact(stops)
	hits := passes(t, tree, append([]string{program}, c.args...), stops)
	y := map[sir.Kind]*tally{}
	for _, m := range all {
		n := 0
		for _, a := range m.Code.Entries {
			n += hits[stop{a, m.Code.When[a]}]
		}
		if y[m.Kind] == nil {
			y[m.Kind] = &tally{why: map[string]int{}}
		}
		is := y[m.Kind]
		switch {
		case m.Code.Uncounted != "":
			is.missing++
			is.why[generalised(m.Code.Uncounted)]++
		case n == m.want:
			is.equal++
		default:
			is.wrong++
			t.Errorf("%s:%d the %s %s is counted %d times, gcov says %d: %x %v", filepath.Base(m.File), m.Line, m.Kind, m.ID, n, m.want, m.Code.Entries, m.Code.When)
		}
	}
	for kind, is := range y {
		t.Logf("%v: %s: %v %v", compiler, kind, is, is.why)
	}
	return y
}

// generalised returns a reason without addresses.
func generalised(why string) string {
	words := strings.Fields(why)
	for i, w := range words {
		if strings.HasPrefix(w, "0x") {
			words[i] = "A"
		}
	}
	return strings.Join(words, " ")
}

// TestBranchesAgreeWithGcov counts the branches, loops and iterations of programs as compilers build them, where sir/binary finds
// their code, and compares with gcov's counts of the same run: no count differs. least has how many must be counted.
func TestBranchesAgreeWithGcov(t *testing.T) {
	for file, atLeast := range map[string]map[string]least{
		"branches.c": {
			"gcc -O0": {18, 9, 9, 10}, "gcc -O1": {12, 6, 6, 0}, "gcc -Og": {8, 10, 0, 0}, "gcc -O2": {8, 3, 2, 0}, "gcc -O2 -gno-column-info": {},
			"clang -O0": {18, 9, 10, 13}, "clang -O0 -gno-column-info": {0, 14, 0, 0}, "clang -O1": {0, 6, 4, 0}, "clang -O2": {0, 5, 3, 0}, "clang -O3": {0, 5, 2, 0},
		},
		"branches.cc": {
			"g++ -O0": {31, 10, 10, 9}, "g++ -O2": {10, 4, 5, 0}, "g++ -Os": {12, 0, 0, 0},
			"clang++ -O0": {29, 10, 10, 7}, "clang++ -O2": {0, 2, 1, 0}, "clang++ -Os": {0, 7, 4, 0},
		},
		"branches.f90": {"gfortran -O0": {18, 12, 12, 0}, "gfortran -Og": {10, 1, 0, 0}, "gfortran -O2": {4, 2, 2, 0}},
	} {
		t.Run(file, func(t *testing.T) {
			c := compared{name: "branches", files: []string{file}}
			c.agrees(t, "testdata", atLeast)
		})
	}
	if *more {
		luaAgrees(t)
	}
}

// agrees compares a program as some compilers build it.
func (c *compared) agrees(t *testing.T, tree string, atLeast map[string]least) {
	t.Helper()
	tree, err := filepath.Abs(tree)
	if err != nil {
		t.Fatal(err)
	}
	want, sources := c.counted(t, tree)
	for how, n := range atLeast {
		t.Run(strings.ReplaceAll(how, " ", ""), func(t *testing.T) {
			n.check(t, c.compare(t, tree, sources, want, append(strings.Fields(how), "-g")...))
		})
	}
}

// TestDirectives counts the directives of OpenMP that a program executes, and the blocks in them.
func TestDirectives(t *testing.T) {
	c := compared{name: "openmp", files: []string{"openmp.c"}, flags: []string{"-fopenmp"}}
	of := resource(t, "testdata/openmp.c")
	p, want := read(t, c.name, of), counts{}
	lines := strings.Split(string(of.Text), "\n")
	for r := range p.All() {
		_, comment, _ := strings.Cut(lines[r.Line-1], "/* ")
		if n, err := strconv.Atoi(strings.TrimSuffix(comment, " */")); err == nil && r.IsStatement() {
			want[r.ID] = n
		}
	}
	tree, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	found := c.compare(t, tree, []outlined{{filepath.Join(tree, "openmp.c"), p}}, want, "gcc", "-O0", "-g")
	if n := found[sir.OpenMP].equal; n < 8 {
		t.Errorf("%d directives are counted", n)
	}
}

// luaAgrees compares ten files of Lua. The seed and the cache of its strings do not depend on addresses, so that each run does
// the same.
func luaAgrees(t *testing.T) {
	t.Helper()
	out, err := exec.Command("../../scripts/sourcetrees", "lua5.4").Output()
	if err != nil {
		t.Fatalf("scripts/sourcetrees: %v", err)
	}
	tree := filepath.Join(strings.TrimSpace(string(out)), "lua5.4", "src")
	script, err := filepath.Abs("testdata/sorted.lua")
	if err != nil {
		t.Fatal(err)
	}
	c := compared{
		name: "lua", args: []string{script}, files: strings.Fields("ltable.c lstrlib.c llex.c lgc.c lcode.c lparser.c lobject.c lvm.c ltablib.c ldo.c"),
		flags: []string{"-DLUA_USE_LINUX", "-DLUA_USE_JUMPTABLE=0", "-Dluai_makeseed(L)=42", "-DSTRCACHE_N=1", "-DSTRCACHE_M=1"},
	}
	all, _ := filepath.Glob(filepath.Join(tree, "*.c")) // the pattern is not malformed
	for _, f := range all {
		if name := filepath.Base(f); name != "luac.c" && !slices.Contains(c.files, name) {
			c.others = append(c.others, name)
		}
	}
	c.agrees(t, tree, map[string]least{
		"gcc -O0": {1431, 165, 168, 226}, "gcc -O1": {799, 140, 138, 0}, "gcc -O2": {523, 93, 108, 0}, "gcc -O3": {435, 81, 94, 0},
		"clang -O0": {1347, 145, 161, 203}, "clang -O1": {0, 75, 72, 0}, "clang -O2": {0, 63, 59, 0}, "clang -O3": {0, 56, 55, 0},
	})
}

// loopsByPosition finds the loops of sources in a program, by the positions of their conditions.
func loopsByPosition(t *testing.T, im *binary.Image, sources []outlined, want counts) (all []measured) {
	t.Helper()
	p, err := im.Program(t.Context())
	if err == nil {
		p, err = im.WithInside(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	built := map[string][]*sir.Region{}
	for r := range p.All() {
		if r.Kind == sir.Loop {
			built[r.File] = append(built[r.File], r)
		}
	}
	for _, s := range sources {
		for r := range s.p.All() {
			if r.Kind != sir.Loop || r.Form == "macro" {
				continue
			}
			i := slices.IndexFunc(r.Regions, func(b sir.Region) bool { return b.Kind == sir.Body })
			if i < 0 {
				continue
			}
			body := &r.Regions[i]
			var found []*sir.Region
			for _, b := range built[s.path] {
				if within(b, r) && (!within(b, body) || b.Code.Column == 0 && b.Line == body.Line) {
					found = append(found, b)
				}
			}
			gone := sir.Region{ID: r.ID, Kind: r.Kind, File: s.path, Line: r.Line, Code: &sir.Code{Uncounted: fmt.Sprintf("the program has %d loops with its condition", min(len(found), 2))}}
			if len(found) == 1 && copiedElsewhere(t, im, &p, found[0]) {
				found, gone.Code.Uncounted = nil, "its function has more code, without the loop"
			}
			if len(found) != 1 {
				found = []*sir.Region{&gone, &gone}
			} else {
				k := slices.IndexFunc(found[0].Regions, func(b sir.Region) bool { return b.Kind == sir.Body })
				if found = append(found, &gone); k >= 0 {
					found[1] = &found[0].Regions[k]
				}
			}
			for k, of := range []*sir.Region{r, body} {
				if n, ok := want[of.ID]; ok {
					one := *found[k]
					one.ID, one.Kind = of.ID, of.Kind
					all = append(all, measured{one, n})
				}
			}
		}
	}
	return all
}

// copiedElsewhere reports whether code of a loop's line is in several functions: gcov counts all of it, but a region is in one.
func copiedElsewhere(t *testing.T, im *binary.Image, p *sir.Program, loop *sir.Region) bool {
	t.Helper()
	line, err := im.Line(t.Context(), loop.File, loop.Line)
	if err != nil {
		return false // no statement begins there
	}
	of := functionAt(p, loop.Entry)
	return slices.ContainsFunc(line.Code.Ranges, func(c sir.Range) bool {
		other := functionAt(p, c.Low)
		return of != nil && other != nil && strings.TrimSuffix(other.Name, ".cold") != strings.TrimSuffix(of.Name, ".cold")
	})
}

// functionAt returns the function with an address, nil if there is none.
func functionAt(p *sir.Program, addr uint64) *sir.Region {
	i := slices.IndexFunc(p.Regions, func(r sir.Region) bool { return r.Entry <= addr && addr < r.Entry+r.Size })
	if i < 0 {
		return nil
	}
	return &p.Regions[i]
}

// within reports whether the position of a region is in another one.
func within(r, in *sir.Region) bool {
	if r.Code.Column == 0 { // Go has no columns
		return in.Line <= r.Line && r.Line <= in.Code.EndLine
	}
	before := func(line, column, line2, column2 int) bool { return line < line2 || line == line2 && column <= column2 }
	return before(in.Line, in.Code.Column, r.Line, r.Code.Column) && before(r.Line, r.Code.Column, in.Code.EndLine, in.Code.EndColumn)
}
