// Package golang weaves regions into sources in Go: where a region begins and ends, the source calls functions at its end
// that mark the region.
//
// A function in Go with woven regions has an array with a variable for each of them, which is true while the region
// is executed. The functions that mark a region get the address of its variable: it identifies the execution. What
// leaves the function, also a panic, ends the regions that are open, in a deferred function.
package golang

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/weave/woven"
)

// Source is a source in Go.
type Source struct {
	*woven.Source
	program *woven.Program
	number  int // of the source
	lines   woven.Lines
	file    *ast.File
	at      *token.File
	err     error
}

// Read reads a source of a program.
func Read(p *woven.Program, source int) *Source {
	s := &p.Sources[source]
	g := &Source{Source: s, program: p, number: source, lines: woven.LinesOf(s.Text)}
	if g.err = checkTokens(s.Text); g.err != nil {
		return g
	}
	set := token.NewFileSet()
	var err error
	if g.file, err = parser.ParseFile(set, "", s.Text, parser.SkipObjectResolution|parser.ParseComments); err != nil {
		g.err = errors.New("its source has errors of syntax")
		return g
	}
	g.at = set.File(g.file.FileStart)
	return g
}

// mostTokens limits the tokens of a source, because the syntax takes up to 100 bytes for each.
const mostTokens = 400_000

func checkTokens(text []byte) error {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", -1, len(text)), text, func(token.Position, string) {}, 0)
	for range mostTokens {
		if _, t, _ := s.Scan(); t == token.EOF {
			return nil
		}
	}
	return fmt.Errorf("its source has more than %d words and signs", mostTokens)
}

// function is a function or a closure with woven regions, in the order of their ids.
type function struct {
	node    ast.Node
	body    *ast.BlockStmt
	regions []*region
}

// Weave returns the text with regions woven in, followed by the functions that they call.
func (s *Source) Weave(regions []*woven.Region) ([]byte, error) {
	short := fmt.Sprintf("%.8s_%d", s.program.ID, s.number+1)
	var edits []woven.Edit
	var defined strings.Builder
	var wrong []error
	var functions []*function
	for i, l := range regions {
		r, err := s.region(l, fmt.Sprintf("%s_%d", short, i+1), &functions)
		var inserted []woven.Edit
		if err == nil {
			inserted, err = r.edits()
		}
		if err != nil {
			wrong = append(wrong, &woven.Refusal{ID: l.ID, Why: err.Error()})
			continue
		}
		edits = append(edits, inserted...)
		r.define(&defined, s.program.ID)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	for i, f := range functions {
		left := fmt.Sprintf("mirador_left_%s_%d", short, i+1)
		edits = append(edits, s.prologue(f, left))
		f.define(&defined, left)
	}
	text := woven.Apply(s.Text, edits)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return append(text, "\n// The functions below mark regions for Mirador.\n"+defined.String()...), nil
}

// prologue declares the array of a function, and has its regions ended when the function is left.
func (s *Source) prologue(f *function, left string) woven.Edit {
	text := fmt.Sprintf(" var mirador_open [%d]bool; defer %s(&mirador_open);", len(f.regions), left)
	for _, r := range f.regions {
		if r.node() == f.node {
			text += r.begin()
		}
	}
	return woven.Edit{At: s.offset(f.body.Lbrace) + 1, Depth: -1, Text: text}
}

// define writes the function that ends the open regions of a function, inner ones first.
func (f *function) define(b *strings.Builder, left string) {
	fmt.Fprintf(b, "\nfunc %s(open *[%d]bool) {\n", left, len(f.regions))
	inner := slices.SortedStableFunc(slices.Values(f.regions), func(a, b *region) int { return b.at.Depth - a.at.Depth })
	for _, r := range inner {
		fmt.Fprintf(b, "\tif open[%d] {\n\t\tmirador_off_%s(&open[%[1]d])\n\t}\n", r.element, r.name)
	}
	b.WriteString("}\n")
}

// define writes the functions of a region. Those that mark it begin with an instruction of 5 bytes, which a jump can
// replace, and keep the argument in its register.
func (r *region) define(b *strings.Builder, weaving string) {
	begins, ends := sir.GoMarks(weaving, r.at.Note())
	fmt.Fprintf(b, "\nfunc mirador_on_%s(open *bool) *bool {\n\t*open = true\n\t%s(open)\n\treturn open\n}\n", r.name, begins)
	fmt.Fprintf(b, "\nfunc mirador_off_%s(open *bool) {\n\t*open = false\n\t%s(open)\n}\n", r.name, ends)
	for _, mark := range []string{begins, ends} {
		fmt.Fprintf(b, "\n//go:noinline\nfunc %s(open *bool) (*bool, int) {\n\treturn open, 1 << 30\n}\n", mark)
	}
	if r.value {
		fmt.Fprintf(b, "\nfunc mirador_call_%s[T any](open *bool, value T) T {\n\tmirador_off_%[1]s(open)\n\treturn value\n}\n", r.name)
	}
}

func (s *Source) offset(p token.Pos) int { return s.at.Offset(p) }

// region finds the syntax of a region and the function around it.
func (s *Source) region(l *woven.Region, name string, functions *[]*function) (*region, error) {
	start, end, ok := l.Span(s.lines, len(s.Text))
	switch {
	case s.err != nil:
		return nil, s.err
	case len(l.Note()) > woven.LongestID:
		return nil, errors.New("its id is too long")
	case !ok:
		return nil, errors.New("its text was not found")
	}
	r := &region{Source: s, at: l, path: s.around(start, end), name: name}
	if len(r.path) == 0 {
		return nil, errors.New("its text was not found")
	}
	node, _, body := r.function()
	if body == nil {
		return nil, errors.New("it is in no function with a body in Go")
	}
	if d, ok := node.(*ast.FuncDecl); ok {
		if word := bound(d); word != "" {
			return nil, fmt.Errorf("its function is marked with %s, and must call no others", word)
		}
	}
	i := slices.IndexFunc(*functions, func(f *function) bool { return f.node == node })
	if i < 0 {
		i = len(*functions)
		*functions = append(*functions, &function{node: node, body: body})
	}
	f := (*functions)[i]
	r.element = len(f.regions)
	f.regions = append(f.regions, r)
	return r, nil
}

// bound returns the directive that forbids to add code to a function, "" if there is none.
func bound(d *ast.FuncDecl) string {
	if d.Doc == nil {
		return ""
	}
	for _, c := range d.Doc.List {
		for _, word := range []string{"//go:nosplit", "//go:systemstack", "//go:nowritebarrier"} {
			if strings.HasPrefix(c.Text, word) {
				return word
			}
		}
	}
	return ""
}

// around returns the nodes around a text, outermost first, up to the region that has this text. There are none if no
// region has it.
func (s *Source) around(start, end int) (path []ast.Node) {
	var open []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return false
		}
		from, to := s.offset(n.Pos()), s.offset(n.End())
		if _, whole := n.(*ast.File); path != nil || !whole && (from > start || to < end) {
			return false
		}
		open = append(open, n)
		if from == start && to == end && isRegion(n) {
			path = slices.Clone(open)
		}
		return true
	})
	return path
}

// isRegion reports whether structures have regions of a type of nodes.
func isRegion(n ast.Node) bool {
	switch n.(type) {
	case *ast.FuncDecl, *ast.FuncLit, *ast.CallExpr, *ast.BlockStmt, *ast.ForStmt, *ast.RangeStmt, *ast.IfStmt, *ast.SwitchStmt,
		*ast.TypeSwitchStmt, *ast.SelectStmt, *ast.CaseClause, *ast.CommClause, *ast.ReturnStmt, *ast.GoStmt, *ast.DeferStmt:
		return true
	}
	return false
}
