package source

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// beginnings are what the text at the position of a region begins with.
var beginnings = map[string]map[sir.Kind]*regexp.Regexp{
	"go": {
		sir.Loop: regexp.MustCompile(`^for\b`), sir.Body: regexp.MustCompile(`^\{`), sir.If: regexp.MustCompile(`^if\b`), sir.Switch: regexp.MustCompile(`^(switch|select)\b`),
		sir.Branch: regexp.MustCompile(`^(\{|case\b|default\b)`), sir.Return: regexp.MustCompile(`^return\b`), sir.Spawn: regexp.MustCompile(`^go\b`), sir.Deferred: regexp.MustCompile(`^defer\b`),
		sir.Function: regexp.MustCompile(`^func\b`), sir.Method: regexp.MustCompile(`^func\b`), sir.Lambda: regexp.MustCompile(`^func\b`),
		sir.Call: regexp.MustCompile(`(?s)^[\pL_(\[*&"].*\)$`), sir.Throw: regexp.MustCompile(`^panic\b`), sir.Scope: regexp.MustCompile(`^\{`), sir.Allocation: regexp.MustCompile(`^(make|new|append)\b`),
	},
	"c": {
		sir.Loop: regexp.MustCompile(`^(for|while|do|[\w]+ *\()`), sir.If: regexp.MustCompile(`^if\b`), sir.Switch: regexp.MustCompile(`^switch\b`),
		sir.Branch: regexp.MustCompile(`^\S`), sir.Return: regexp.MustCompile(`^(co_)?return\b`), sir.Call: regexp.MustCompile(`(?s)^.*\)$`),
		sir.OpenMP: regexp.MustCompile(`^# *pragma`), sir.Function: regexp.MustCompile(`^[\pL_\[(*~:]`), sir.Class: regexp.MustCompile(`^(class|struct|union)\b`),
		sir.Throw: regexp.MustCompile(`^throw\b`), sir.Try: regexp.MustCompile(`^try\b`), sir.Catch: regexp.MustCompile(`^catch\b`), sir.Module: regexp.MustCompile(`^(inline +)?namespace\b`),
		sir.Lambda: regexp.MustCompile(`^\[`), sir.Allocation: regexp.MustCompile(`^(::)? *(new|delete)\b`), sir.Scope: regexp.MustCompile(`^\{`),
	},
	"java": {
		sir.Loop: regexp.MustCompile(`^(for|while|do)\b`), sir.If: regexp.MustCompile(`^if\b`), sir.Switch: regexp.MustCompile(`^switch\b`), sir.Branch: regexp.MustCompile(`^\S`),
		sir.Return: regexp.MustCompile(`^return\b`), sir.Throw: regexp.MustCompile(`^throw\b`), sir.Try: regexp.MustCompile(`^try\b`), sir.Catch: regexp.MustCompile(`^catch\b`),
		sir.Finally: regexp.MustCompile(`^finally\b`), sir.Lock: regexp.MustCompile(`^synchronized\b`), sir.Call: regexp.MustCompile(`(?s)^.*\);?$`), sir.Method: regexp.MustCompile(`^[\pL_@<{]`),
		sir.Class: regexp.MustCompile(`^[\pL_@{]`), sir.Allocation: regexp.MustCompile(`new\b`), sir.Scope: regexp.MustCompile(`^\{`),
	},
	"fortran": {
		sir.Loop: regexp.MustCompile(`(?i)^(d *o|\w+ *: *do|\()`), sir.If: regexp.MustCompile(`(?i)^(i *f|\w+ *: *if)`), sir.Switch: regexp.MustCompile(`(?i)^(select|\w+ *: *select)`),
		sir.Branch: regexp.MustCompile(`^\S`), sir.Return: regexp.MustCompile(`(?i)^return`), sir.Stop: regexp.MustCompile(`(?i)^(error *)?stop`),
		sir.IO:   regexp.MustCompile(`(?i)^(read|write|print|open|close|inquire|rewind|backspace|end *file|flush|wait)`),
		sir.Call: regexp.MustCompile(`(?i)^(call|\w+)`), sir.Allocation: regexp.MustCompile(`(?i)^(de)?allocate`), sir.OpenMP: regexp.MustCompile(`(?i)^[!c*]\$omp`),
		sir.Subroutine: regexp.MustCompile(`(?is)^.{0,80}subroutine|^module\s+procedure`), sir.Function: regexp.MustCompile(`(?is)^.{0,80}function`),
		sir.Module: regexp.MustCompile(`(?i)^(sub)?module|^block`),
	},
}

// checker checks properties of the regions of sources.
type checker struct {
	testing.TB
	form     bool // texts are checked too
	complete bool // all was understood
	texts    map[string][]byte
	lines    map[string][]int
	ids      map[string]bool
	count    map[sir.Kind]int
}

// sound checks that the regions of a program are inside those around them, do not overlap, have ids
// of their own, and begin at their positions. It returns how many of each kind there are.
func sound(t testing.TB, p *sir.Program, resources []Resource) map[sir.Kind]int {
	c := newChecker(t, resources)
	c.complete = !slices.ContainsFunc(p.Resources, func(r sir.Resource) bool { return len(r.Gaps) > 0 })
	c.program(p)
	return c.count
}

func newChecker(t testing.TB, resources []Resource) *checker {
	c := &checker{TB: t, form: true, texts: map[string][]byte{}, lines: map[string][]int{}, ids: map[string]bool{}, count: map[sir.Kind]int{}}
	for _, r := range resources {
		c.texts[r.Path] = r.Text
		c.lines[r.Path] = append([]int{0}, starts(r.Text)...)
	}
	return c
}

func (c *checker) program(p *sir.Program) {
	last := map[string]int{}
	for i := range p.Regions {
		r := &p.Regions[i]
		from, to := c.extent(r)
		if from < last[r.File] {
			c.Errorf("%s at %s:%d overlaps the region before it", r.ID, r.File, r.Line)
		}
		last[r.File] = to
		c.region(r)
	}
}

func starts(text []byte) (at []int) {
	for i, b := range text {
		if b == '\n' {
			at = append(at, i+1)
		}
	}
	return at
}

// extent returns the bytes of a region.
func (c *checker) extent(r *sir.Region) (from, to int) {
	column, endLine, endColumn := 0, 0, 0
	if r.Code != nil {
		column, endLine, endColumn = r.Code.Column, r.Code.EndLine, r.Code.EndColumn
	} else {
		column, endLine, endColumn = r.Extent.Column, r.Extent.EndLine, r.Extent.EndColumn
	}
	lines := c.lines[r.File]
	if r.Line < 1 || endLine > len(lines) || column < 1 || endColumn < 1 {
		c.Fatalf("%s is at %s:%d:%d to %d:%d", r.ID, r.File, r.Line, column, endLine, endColumn)
	}
	return lines[r.Line-1] + column - 1, lines[endLine-1] + endColumn
}

func (c *checker) region(r *sir.Region) {
	c.count[r.Kind]++
	if c.ids[r.ID] {
		c.Errorf("the id %s is not unique", r.ID)
	}
	c.ids[r.ID] = true
	from, to := c.extent(r)
	text := c.texts[r.File][from:to]
	language := strings.TrimSuffix(Language(r.File), "++")
	if want := beginnings[language][r.Kind]; c.form && len(bytes.TrimSpace(text[:1])) == 0 || want != nil && !want.Match(text) && (c.complete || r.Kind != sir.Call) && c.form {
		c.Errorf("%s at %s:%d begins with %.40q", r.ID, r.File, r.Line, text)
	}
	if r.Code == nil != outline.IsUnit(r.Kind) {
		c.Errorf("%s is a unit and inside a unit", r.ID)
	}
	at := from
	for i := range r.Regions {
		inner := &r.Regions[i]
		a, b := c.extent(inner)
		if a < at || b > to || b <= a {
			c.Errorf("%s at %s:%d has bytes %d to %d, between %d and %d", inner.ID, r.File, inner.Line, a, b, at, to)
		}
		at = b
		c.region(inner)
	}
}

// resource returns a file of a name as a resource.
func resource(t testing.TB, path string) Resource {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Resource{In: "file://" + path, Path: path, Text: text}
}

func read(t testing.TB, program string, resources ...Resource) sir.Program {
	t.Helper()
	p, err := Read(context.Background(), program, resources)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStandardLibrary reads the packages of Go's standard library. All of it is understood.
func TestStandardLibrary(t *testing.T) {
	total := map[sir.Kind]int{}
	err := filepath.WalkDir(filepath.Join(goroot(t), "src"), func(dir string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || !*more && (d.Name() == "cmd" || d.Name() == "vendor") {
			return filepath.SkipDir
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		var resources []Resource
		for i, f := range files {
			if i%6 == 0 || *more {
				resources = append(resources, resource(t, f))
			}
		}
		if len(resources) == 0 {
			return nil
		}
		p := read(t, "std", resources...)
		for _, r := range p.Resources {
			if len(r.Gaps) > 0 {
				t.Errorf("%s:%d: %s", r.In, r.Gaps[0].Line, r.Gaps[0].Reason)
			}
		}
		for kind, n := range sound(t, &p, resources) {
			total[kind] += n
		}
		if *more {
			valid(t, &p)
		}
		return nil
	})
	if err != nil || total[sir.Loop] < 1000 || total[sir.Lambda] < 250 || total[sir.Method] < 1500 {
		t.Errorf("there are %v, %v", total, err)
	}
}

func goroot(t testing.TB) string {
	t.Helper()
	out := output(t, "go", "env", "GOROOT")
	return strings.TrimSpace(out)
}

// ids lists the ids of functions and loops of a program, with those of some kinds only.
func ids(p *sir.Program, keep func(*sir.Region) bool) (list []string) {
	for r := range p.All() {
		if keep(r) {
			list = append(list, r.ID)
		}
	}
	return list
}
