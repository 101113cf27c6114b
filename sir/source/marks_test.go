package source

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
)

// edit is a text that is inserted into a source before a byte.
type edit struct {
	at   int
	id   string // of the region that is marked there
	text string
}

// mark is a statement that is written into a source, so that gcov counts its line.
const mark = "\nmirador_mark++;\n"

// gnu has the compilers whose programs count for gcov.
var gnu = map[string]string{"c": "gcc", "c++": "g++", "fortran": "gfortran"}

// language returns the language of the files that are compared.
func (c *compared) language() string { return Language(c.files[0]) }

// marker writes marks before regions of a source.
type marker struct {
	text   string
	starts []int // of lines
	list   []edit
}

// offset returns the byte at a position.
func (m *marker) offset(line, column int) int { return m.starts[line-1] + column - 1 }

// isMarked reports whether a region is one that is compared.
func isMarked(r *sir.Region) bool {
	return r.Code != nil && r.Form != "macro" && (r.Kind == sir.Loop || r.Kind == sir.Body || r.Kind == sir.Branch || r.IsStatement())
}

func (m *marker) braces(regions []sir.Region) {
	for i := range regions {
		r := &regions[i]
		isCase := r.Kind == sir.Branch && (r.Form == "case" || r.Form == "default")
		switch {
		case !isMarked(r):
		case isCase:
			start := m.offset(r.Line, r.Code.Column)
			m.list = append(m.list, edit{start + labelEnd(m.text[start:]), r.ID, mark})
		default:
			m.list = append(m.list, edit{m.offset(r.Line, r.Code.Column), r.ID, "{" + mark})
		}
		m.braces(r.Regions)
		if isMarked(r) && !isCase {
			m.list = append(m.list, edit{m.offset(r.Code.EndLine, r.Code.EndColumn) + 1, "", "\n}"})
		}
	}
}

// labelEnd returns the length of the label that begins a branch of a switch.
func labelEnd(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'':
			quoted = !quoted
		case '\\':
			i++
		case ':':
			if !quoted && (i+1 == len(text) || text[i+1] != ':') && text[i-1] != ':' {
				return i + 1
			}
		}
	}
	return len(text)
}

// blanks precede a statement of Fortran, also in fixed form. called is the mark.
const (
	blanks = "      "
	called = "call mirador_mark()\n" + blanks
)

var ofFortran = regexp.MustCompile(`(?i)^(else|case|type|class|rank)`)

func (m *marker) statements(regions []sir.Region) {
	for i := range regions {
		r := &regions[i]
		if isMarked(r) && r.Form != "implied" {
			m.statement(r)
		}
		m.statements(r.Regions)
	}
}

// statement marks a region before its first statement, which may be what begins a branch. Statements with a label are not
// marked, nor are those that go on in the next line.
func (m *marker) statement(r *sir.Region) {
	at, from := m.offset(r.Line, r.Code.Column), m.starts[r.Line-1]
	before := m.text[from:at]
	line, _, _ := strings.Cut(m.text[at:], "\n")
	switch {
	case r.Kind == sir.Branch && ofFortran.MatchString(line) && strings.TrimSpace(before) == "":
		if !strings.HasSuffix(strings.TrimSpace(line), "&") {
			m.list = append(m.list, edit{at + len(line), r.ID, "\n" + blanks + strings.TrimSuffix(called, "\n"+blanks)})
		}
	case strings.HasSuffix(strings.TrimSpace(before), ")") && !r.IsStatement(): // the statement of a short IF
		if r.Code.EndLine == r.Line {
			m.list = append(m.list, edit{at, r.ID, "then\n" + blanks + called}, edit{m.offset(r.Line, r.Code.EndColumn) + 1, "", "\n" + blanks + "end if"})
		}
	case strings.TrimSpace(before) == "":
		m.list = append(m.list, edit{at, r.ID, called})
	}
}

// marked writes marks into a source. It returns the lines of the marks by ids.
func marked(p *sir.Program, text string) (string, map[string]int) {
	m := marker{text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			m.starts = append(m.starts, i+1)
		}
	}
	var out strings.Builder
	if p.Resources[0].Language == "fortran" {
		m.statements(p.Regions)
	} else {
		m.braces(p.Regions)
		out.WriteString("static volatile long mirador_mark;\n")
	}
	slices.SortStableFunc(m.list, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	at, line, lines := 0, 1+strings.Count(out.String(), "\n"), map[string]int{}
	write := func(s string) {
		out.WriteString(s)
		line += strings.Count(s, "\n")
	}
	for _, e := range m.list {
		write(text[at:e.at])
		at = e.at
		if e.id != "" {
			before, _, _ := strings.Cut(e.text, "mirador_mark")
			lines[e.id] = line + strings.Count(before, "\n")
		}
		write(e.text)
	}
	write(text[at:])
	return out.String(), lines
}

// withMark adds the procedure that marks of Fortran call.
func (c *compared) withMark(t *testing.T, dir string) *compared {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "mark.c"), []byte("void mirador_mark_(void) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	more := *c
	more.others = append([]string{"mark.c"}, c.others...)
	return &more
}
