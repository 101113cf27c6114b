package binary

import (
	"cmp"
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
	"mirador/sir/source"
	"mirador/sir/weave"
)

const weavingID = "0123456789abcdef"

// goModule is a copy of a program in Go with a package of the standard library.
type goModule struct {
	dir   string
	files []string
}

func newGoModule(t *testing.T) goModule {
	t.Helper()
	m := goModule{dir: t.TempDir()}
	root := strings.TrimSpace(run(t, "go", "env", "GOROOT"))
	for from, to := range map[string]string{"testdata/ways.go.txt": "main.go", filepath.Join(root, "src/text/tabwriter/tabwriter.go"): "tabwriter/tabwriter.go"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		m.files = append(m.files, to)
		m.write(t, to, text)
	}
	slices.Sort(m.files)
	m.write(t, "go.mod", []byte("module ways\n\ngo 1.24\n"))
	return m
}

func (m goModule) write(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// do runs a command in the module.
func (m goModule) do(t *testing.T, env string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = m.dir, append(os.Environ(), env)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return string(out)
}

// weave weaves all regions that can be woven, and returns them, and why others are refused.
func (m goModule) weave(t *testing.T) (regions []*sir.Region, refused map[string]string) {
	t.Helper()
	var sources []source.Resource
	for _, name := range m.files {
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source.Resource{In: name, Path: filepath.Join(m.dir, name), Text: text})
	}
	p, err := source.Read(t.Context(), "ways", sources)
	if err != nil {
		t.Fatal(err)
	}
	var files []weave.Source
	for _, s := range sources {
		files = append(files, weave.Source{Path: s.Path, Language: "go", Text: s.Text})
	}
	w, err := weave.New(weavingID, &p, files)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	refused = map[string]string{}
	for r := range p.All() {
		if no := (*weave.Refusal)(nil); errors.As(w.Check(r.ID), &no) {
			refused[r.ID] = no.Why
			continue
		}
		regions, ids = append(regions, r), append(ids, r.ID)
	}
	woven, err := w.Weave(ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range woven {
		m.write(t, m.files[f.Source], f.Text)
	}
	return regions, refused
}

// coverBlock is a block of a coverage profile.
type coverBlock struct{ line, column, count int }

// covered returns the blocks of each file in the order of their beginnings.
func (m goModule) covered(t *testing.T) map[string][]coverBlock {
	t.Helper()
	m.do(t, "", "go", "build", "-cover", "-covermode=count", "-o", "covered", ".")
	data := t.TempDir()
	m.do(t, "GOCOVERDIR="+data, "./covered")
	m.do(t, "", "go", "tool", "covdata", "textfmt", "-i="+data, "-o=profile")
	profile, err := os.ReadFile(filepath.Join(m.dir, "profile"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]coverBlock{}
	for _, found := range regexp.MustCompile(`(?m)^ways/(.*):(\d+)\.(\d+),.* (\d+)$`).FindAllStringSubmatch(string(profile), -1) {
		line, _ := strconv.Atoi(found[2])
		column, _ := strconv.Atoi(found[3])
		count, _ := strconv.Atoi(found[4])
		file := filepath.Join(m.dir, found[1])
		blocks[file] = append(blocks[file], coverBlock{line, column, count})
	}
	for _, list := range blocks {
		slices.SortFunc(list, coverBlock.compare)
	}
	return blocks
}

func (c coverBlock) compare(d coverBlock) int {
	return cmp.Or(cmp.Compare(c.line, d.line), cmp.Compare(c.column, d.column))
}

// expectedInGo returns how often a region was executed: a function or block as often as the first block of the profile
// inside, a statement as often as the block around it. The profile's block of an else begins behind that word.
func expectedInGo(r *sir.Region, blocks []coverBlock) int {
	begin := coverBlock{line: r.Line}
	if r.Code != nil {
		begin.column = r.Code.Column
	} else {
		begin.column = r.Extent.Column
	}
	if r.Form == "else" {
		begin.column--
	}
	i, found := slices.BinarySearchFunc(blocks, begin, coverBlock.compare)
	switch r.Kind {
	case sir.Function, sir.Method, sir.Lambda, sir.Body, sir.Branch, sir.Scope:
		return blocks[i].count
	}
	if found {
		return blocks[i].count
	}
	return blocks[i-1].count
}

// counting is a package that counts how often marks are passed.
const counting = `package counting

import (
	"fmt"
	"os"
	"sync"
)

var (
	mu     sync.Mutex
	counts = map[string]int{}
)

func Add(name string) {
	mu.Lock()
	defer mu.Unlock()
	counts[name]++
}

func Write() {
	f, _ := os.Create(os.Getenv("COUNTS"))
	for name, n := range counts {
		fmt.Fprintln(f, name, n)
	}
	f.Close()
}
`

// passed runs the woven program with marks that count, and returns how often each was passed.
func (m goModule) passed(t *testing.T) map[string]int {
	t.Helper()
	m.write(t, "counting/counting.go", []byte(counting))
	marks := regexp.MustCompile(`func (mirador_(?:begin|end)_\w+)\(open \*bool\) \(\*bool, int\) \{`)
	for _, name := range m.files {
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text = marks.ReplaceAll(text, []byte("$0\n\tcounting.Add(\"$1\")"))
		text = regexp.MustCompile(`import \(`).ReplaceAll(text, []byte("$0\n\t\"ways/counting\""))
		text = regexp.MustCompile(`func main\(\) \{`).ReplaceAll(text, []byte("$0 defer counting.Write();"))
		m.write(t, name, text)
	}
	file := filepath.Join(m.dir, "counts")
	m.do(t, "", "go", "build", "-o", "counting/counts", ".")
	m.do(t, "COUNTS="+file, "counting/counts")
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(lines)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		counts[name], _ = strconv.Atoi(n)
	}
	return counts
}

// TestWovenAgreesWithCover checks that a woven program in Go compiles, passes go vet and prints what it printed before,
// and that it begins and ends each region as often as go tool cover counts.
func TestWovenAgreesWithCover(t *testing.T) {
	m := newGoModule(t)
	blocks := m.covered(t)
	want := m.do(t, "GOCOVERDIR="+t.TempDir(), "./covered")
	regions, refused := m.weave(t)
	m.do(t, "", "go", "vet", "./...")
	m.do(t, "", "go", "build", "-ldflags=-s -w", "-o", "woven", ".")
	if got := m.do(t, "", "./woven"); got != want {
		t.Errorf("the woven program prints\n%s\nnot\n%s", got, want)
	}
	im := open(t, filepath.Join(m.dir, "woven"))
	if id := im.Functions().Weaving; id != weavingID {
		t.Errorf("the weaving is %q", id)
	}
	passed := m.passed(t)
	for _, r := range regions {
		begins, ends := sir.GoMarks(weavingID, string(r.Kind)+":"+r.ID)
		if begun, ended, want := passed[begins], passed[ends], expectedInGo(r, blocks[r.File]); begun != want || ended != want {
			t.Errorf("%s in line %d is begun %d and ended %d times, go tool cover says %d", r.ID, r.Line, begun, ended, want)
		}
		if w := im.Units().ByID(r.ID); passed[begins] > 0 && (w == nil || w.Kind != r.Kind || len(w.Code.Entries) != 1 || len(w.Code.Exits) != 1) {
			t.Errorf("the stripped program has %s as %+v", r.ID, w)
		}
	}
	if len(regions) < 340 {
		t.Errorf("only %d regions can be woven; others: %v", len(regions), refused)
	}
}
