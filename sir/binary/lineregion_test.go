package binary

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

func linesOf(t *testing.T, im *Image, file string) []sir.Region {
	t.Helper()
	lines, err := im.Lines(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// compareLines compares the counts of lines with those of gcov: at least so many must agree, at most so many may
// differ, or be refused. gcov does not show the line of the brace that begins a function.
func compareLines(t *testing.T, all []counted, want map[int]int, least, differ, refused int) {
	t.Helper()
	agree, others, gone := 0, 0, 0
	for _, r := range all {
		n, known := want[r.Line]
		switch {
		case r.Kind != sir.Line || !known:
		case r.Code.Uncounted != "":
			gone++
			t.Logf("line %d: %s", r.Line, r.Code.Uncounted)
		case n == r.hits:
			agree++
		default:
			others++
			t.Logf("line %d is counted %d times, gcov says %d", r.Line, r.hits, n)
		}
	}
	if agree < least || others > differ || gone > refused {
		t.Errorf("%d lines agree, %d differ, %d are refused, of %d", agree, others, gone, len(want))
	}
}

// TestLinesOfCxxAgreeWithGcov compares all lines. Two braces are counted as gdb stops there: one that ends a
// block, which continue leaves without its statement, and one behind a lambda.
func TestLinesOfCxxAgreeWithGcov(t *testing.T) {
	const source = "testdata/lines.cc"
	program := filepath.Join(t.TempDir(), "lines")
	run(t, "g++", "-O0", "-g", "-no-pie", "-o", program, source)
	compareLines(t, count(t, program, linesOf(t, open(t, program), "lines.cc")), covered(t, source), 47, 2, 0)
}

func language(source string) string {
	if strings.HasSuffix(source, ".c") {
		return "c"
	}
	return "c++"
}

var runs = regexp.MustCompile(`// runs (\d+)`)

// expectLines counts the lines of a source that say how often they run. Where gdb has a breakpoint for
// such a line, it is in the line's code.
func expectLines(t *testing.T, im *Image, source string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	found := map[int]counted{}
	for _, r := range count(t, im.Path(), linesOf(t, im, filepath.Base(source))) {
		found[r.Line] = r
	}
	var marked []int
	for i, line := range lines {
		m := runs.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		want, _ := strconv.Atoi(m[1])
		r, ok := found[i+1]
		if !ok || r.hits != want || r.Code.Uncounted != "" {
			t.Errorf("%s runs %d times (%v) %s", strings.TrimSpace(line), r.hits, ok, r.why())
		}
		marked = append(marked, i+1)
	}
	for line, addrs := range breakpoints(t, im.Path(), filepath.Base(source), marked) {
		for _, a := range addrs {
			if c := found[line].Code; c != nil && !slices.ContainsFunc(c.Ranges, func(r sir.Range) bool { return r.Low <= a && a < r.High }) {
				t.Errorf("the breakpoint of gdb for line %d at %#x is not in %x", line, a, c.Ranges)
			}
		}
	}
}

// why says why a line is not counted.
func (c *counted) why() string {
	if c.Code == nil {
		return "no code"
	}
	return c.Code.Uncounted
}

// breakpoints returns the addresses at which gdb breaks for lines of a file.
func breakpoints(t *testing.T, program, file string, lines []int) map[int][]uint64 {
	t.Helper()
	args := []string{"-nx", "-batch"}
	for _, l := range lines {
		args = append(args, "-ex", "break "+file+":"+strconv.Itoa(l))
	}
	out := run(t, "gdb", append(args, "-ex", "info breakpoints", program)...)
	list := out[strings.LastIndex(out, "Num "):]
	found := map[int][]uint64{}
	row := regexp.MustCompile(`(0x[0-9a-f]{16}) in .* at .*` + regexp.QuoteMeta(file) + `:(\d+)`)
	for line := range strings.Lines(list) {
		if m := row.FindStringSubmatch(line); m != nil {
			at, _ := strconv.ParseUint(m[1], 0, 64)
			n, _ := strconv.Atoi(m[2])
			found[n] = append(found[n], at)
		}
	}
	if len(found) < len(lines)/2 {
		t.Fatalf("gdb breaks at %d of %d lines:\n%s", len(found), len(lines), out)
	}
	return found
}

func TestLinesOfGo(t *testing.T) {
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	expectLines(t, builtGo(t, "looping"), "testdata/looping/main.go")
}

func TestLinesOfRust(t *testing.T) {
	program := filepath.Join(t.TempDir(), "looping")
	if out, err := exec.Command("rustc", "-g", "-C", "opt-level=0", "-C", "relocation-model=static", "-o", program, "testdata/looping.rs").CombinedOutput(); err != nil {
		t.Fatalf("rustc: %v\n%s", err, out)
	}
	expectLines(t, open(t, program), "testdata/looping.rs")
}

// TestLinesWithoutCode checks what the error about a line says.
func TestLinesWithoutCode(t *testing.T) {
	im := open(t, named(t, "O0"))
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{"shapes.c", 1, "no statement of O0 begins at line 1 of shapes.c; the nearest lines where one begins: "},
		{"capes.c", 1, "no code of the program is from a file with this name"},
		{"c", 1, "no code of the program"},
	} {
		_, err := im.Line(t.Context(), c.file, c.line)
		if lost := (*sir.LineError)(nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:%d: %v", c.file, c.line, err)
		}
	}
	if _, err := open(t, named(t, "O0-nopie")).Line(t.Context(), "shapes.c", 9); err == nil || !strings.Contains(err.Error(), "has no line table") {
		t.Errorf("without debug information: %v", err)
	}
}
