package binary

import (
	"cmp"
	"encoding/json"
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

// covered returns how often each line of a C file is executed, according to gcov.
func covered(t *testing.T, source string) map[int]int {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "covered")
	if strings.HasPrefix(filepath.Ext(source), ".f") {
		run(t, "gfortran", "-J", dir, "-std=legacy", "-O0", "--coverage", "-o", program, source)
	} else {
		run(t, "g++", "-x", language(source), "-O0", "--coverage", "-o", program, source)
	}
	run(t, program)
	notes, err := filepath.Glob(filepath.Join(dir, "*.gcda"))
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	var report struct {
		Files []struct {
			File  string
			Lines []struct {
				Number int `json:"line_number"`
				Count  int
			}
		}
	}
	if err := json.Unmarshal([]byte(run(t, "gcov", "--json-format", "--stdout", notes[0])), &report); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, f := range report.Files {
		if f.File == source {
			for _, l := range f.Lines {
				counts[l.Number] += l.Count
			}
		}
	}
	return counts
}

// marked is a loop of a C file with what gcov counts of it.
type marked struct {
	name                   string
	line                   int
	executions, iterations int // -1: not marked
}

var comment = regexp.MustCompile(`/\* (loop|before|inside) (\w+) \*/`)

func markedLoops(t *testing.T, source string, counts map[int]int) (loops []*marked) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		m := comment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		k := slices.IndexFunc(loops, func(l *marked) bool { return l.name == m[2] })
		if k < 0 {
			k, loops = len(loops), append(loops, &marked{m[2], 0, -1, -1})
		}
		switch m[1] {
		case "loop":
			loops[k].line = i + 1
		case "before":
			loops[k].executions = counts[i+1]
		case "inside":
			loops[k].iterations = counts[i+1]
		}
	}
	return loops
}

// stop is an address where gdb counts, perhaps under a condition of the flags.
type stop struct {
	addr uint64
	when sir.Condition
}

// stopsOf returns where executions of a region begin.
func stopsOf(r *sir.Region) (list []stop) {
	for _, a := range r.Code.Entries {
		list = append(list, stop{a, r.Code.When[a]})
	}
	return list
}

// flags has the conditions of the flags, in the language of gdb.
var flags = [...]string{"$eflags & 0x800", "$eflags & 1", "$eflags & 0x40", "$eflags & 0x41", "$eflags & 0x80", "$eflags & 4",
	"(($eflags >> 4) ^ $eflags) & 0x80", "(((($eflags >> 4) ^ $eflags) & 0x80) | ($eflags & 0x40))"}

func (s stop) condition() string {
	if s.when == 0 {
		return ""
	}
	number := int(s.when - 1)
	return fmt.Sprintf(" if ((%s) != 0) == %d", flags[number/2], 1-number%2)
}

// hits runs a program under gdb and returns how often it reaches addresses.
func hits(t *testing.T, program string, addrs []uint64) map[uint64]int {
	t.Helper()
	var stops []stop
	for _, a := range addrs {
		stops = append(stops, stop{addr: a})
	}
	found := map[uint64]int{}
	for s, n := range stopped(t, program, stops) {
		found[s.addr] = n
	}
	return found
}

// stopped runs a program under gdb and returns how often it stops.
func stopped(t *testing.T, program string, stops []stop) map[stop]int {
	t.Helper()
	var script strings.Builder
	script.WriteString("set breakpoint pending off\nset confirm off\nset language c\nhandle SIGURG nostop noprint pass\n")
	slices.SortFunc(stops, func(a, b stop) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.when, b.when)) })
	stops = slices.Compact(stops)
	for i, s := range stops {
		fmt.Fprintf(&script, "break *%#x%s\nignore %d 100000000\n", s.addr, s.condition(), i+1)
	}
	script.WriteString("run > /dev/null\ninfo breakpoints\n")
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, "gdb", "-nx", "-batch", "-x", file, program)
	found := map[stop]int{}
	list := out[strings.LastIndex(out, "Num "):]
	row, times := regexp.MustCompile(`^(\d+)\s.*0x[0-9a-f]{16}`), regexp.MustCompile(`already hit (\d+) time`)
	at := stop{}
	for line := range strings.Lines(list) {
		if m := row.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			at = stops[n-1]
		} else if m := times.FindStringSubmatch(line); m != nil {
			found[at], _ = strconv.Atoi(m[1])
		}
	}
	return found
}

// inside returns all regions inside the functions of a program.
func inside(t *testing.T, im *Image) (all []sir.Region) {
	t.Helper()
	for _, u := range program(im).Regions {
		if filepath.Base(u.File) != "loops.c" {
			continue
		}
		regions, err := im.Inside(t.Context(), &u)
		if err != nil {
			t.Error(err)
		}
		p := sir.Program{Regions: regions}
		for r := range p.All() {
			all = append(all, *r)
		}
	}
	return all
}

// counted is a region with what gdb counts at its entries.
type counted struct {
	sir.Region
	hits int
}

// countedLoops compiles a C file, and counts all regions inside its functions, and all lines.
func countedLoops(t *testing.T, source string, flags ...string) (all []counted) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loops")
	run(t, "gcc", append(flags, "-g", "-no-pie", "-o", path, source)...)
	im := open(t, path)
	return count(t, path, append(inside(t, im), linesOf(t, im, filepath.Base(source))...))
}

// count counts regions with gdb.
func count(t *testing.T, program string, regions []sir.Region) (all []counted) {
	t.Helper()
	var stops []stop
	for _, r := range regions {
		stops = append(stops, stopsOf(&r)...)
	}
	at := map[stop]int{}
	if len(stops) > 0 {
		at = stopped(t, program, stops)
	}
	for _, r := range regions {
		c := counted{Region: r}
		for _, s := range stopsOf(&r) {
			c.hits += at[s]
		}
		all = append(all, c)
	}
	return all
}

// TestLoopsAgreeWithGcov counts executions and iterations of loops with gdb at the addresses that
// Inside found, and compares with gcov's counts of a program that gcc instrumented. Without
// optimisation all loops must agree. With it, a loop must agree if the code has it exactly
// once and it is not refused.
func TestLoopsAgreeWithGcov(t *testing.T) {
	const source = "testdata/loops.c"
	lines := covered(t, source)
	loops := markedLoops(t, source, lines)
	for level, least := range map[string]int{"-O0": 2 * len(loops), "-O2": 2*len(loops) - 6} {
		t.Run(level, func(t *testing.T) {
			all := countedLoops(t, source, level)
			if level == "-O0" {
				compareCalls(t, all, lines)
				compareLines(t, all, lines, 127, 0, 1)
			} else {
				compareLines(t, all, lines, 100, 9, 1)
			}
			if level == "-O0" && !slices.ContainsFunc(all, func(r counted) bool {
				return r.Kind == sir.Loop && strings.Contains(r.ID, ":halves/") && len(r.Code.When) == 1
			}) {
				t.Error("no outcome of a branch counts executions of the loop in halves")
			}
			agree := 0
			for _, l := range loops {
				found := map[sir.Kind][]counted{}
				for _, r := range all {
					if r.Line == l.line {
						found[r.Kind] = append(found[r.Kind], r)
					}
				}
				if len(found[sir.Loop]) != 1 {
					continue
				}
				for kind, want := range map[sir.Kind]int{sir.Loop: l.executions, sir.Body: l.iterations} {
					switch r := found[kind][0]; {
					case want < 0 || r.hits == want:
						agree++
					case r.Code.Uncounted == "":
						t.Errorf("%s (%s) is counted %d times, gcov says %d: %+v", r.ID, l.name, r.hits, want, r.Code)
					}
				}
			}
			if agree < least {
				t.Errorf("%d counts of %d loops agree, want %d", agree, len(loops), least)
			}
		})
	}
}

// compareCalls compares the number of executions of two calls with gcov's counts of their lines.
func compareCalls(t *testing.T, all []counted, lines map[int]int) {
	t.Helper()
	compared := 0
	for _, r := range all {
		if r.Kind != sir.Call || r.Code.Callee != "called" {
			continue
		}
		compared++
		if r.hits != lines[r.Line] || !strings.HasPrefix(r.ID, "loops:calls/loop1/call.called") {
			t.Errorf("%s in line %d is executed %d times, gcov says %d", r.ID, r.Line, r.hits, lines[r.Line])
		}
	}
	if compared != 2 {
		t.Errorf("%d calls are compared", compared)
	}
}
