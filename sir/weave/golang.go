package weave

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	gotoken "go/token"
	"slices"
	"strings"

	"mirador/sir"
)

// A function in Go with woven regions has an array with a variable for each of them, which is true while the region
// is executed. The functions that mark a region get the address of its variable: it identifies the execution. What
// leaves the function, also a panic, ends the regions that are open, in a deferred function.

// goSource is a source in Go.
type goSource struct {
	*Source
	lines lines
	file  *ast.File
	at    *gotoken.File
	err   error
}

func newGoSource(_ *Weaving, s *Source) text {
	g := &goSource{Source: s, lines: linesOf(s.Text)}
	if g.err = checkGoTokens(s.Text); g.err != nil {
		return g
	}
	set := gotoken.NewFileSet()
	var err error
	if g.file, err = parser.ParseFile(set, "", s.Text, parser.SkipObjectResolution|parser.ParseComments); err != nil {
		g.err = errors.New("its source has errors of syntax")
		return g
	}
	g.at = set.File(g.file.FileStart)
	return g
}

// mostGoTokens limits the tokens of a source, because the syntax takes up to 100 bytes for each.
const mostGoTokens = 400_000

func checkGoTokens(text []byte) error {
	var s scanner.Scanner
	set := gotoken.NewFileSet()
	s.Init(set.AddFile("", -1, len(text)), text, func(gotoken.Position, string) {}, 0)
	for range mostGoTokens {
		if _, t, _ := s.Scan(); t == gotoken.EOF {
			return nil
		}
	}
	return fmt.Errorf("its source has more than %d words and signs", mostGoTokens)
}

// goFunction is a function or a closure with woven regions, in the order of their ids.
type goFunction struct {
	node    ast.Node
	body    *ast.BlockStmt
	regions []*goRegion
}

// woven returns the text with regions woven in, followed by the functions that they call.
func (s *goSource) woven(weaving string, source int, regions []*located) ([]byte, error) {
	short := fmt.Sprintf("%.8s_%d", weaving, source+1)
	var edits []edit
	var defined strings.Builder
	var wrong []error
	var functions []*goFunction
	for i, l := range regions {
		r, err := s.region(l, fmt.Sprintf("%s_%d", short, i+1), &functions)
		var inserted []edit
		if err == nil {
			inserted, err = r.edits()
		}
		if err != nil {
			wrong = append(wrong, &Refusal{l.ID, err.Error()})
			continue
		}
		edits = append(edits, inserted...)
		r.define(&defined, weaving)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	for i, f := range functions {
		left := fmt.Sprintf("mirador_left_%s_%d", short, i+1)
		edits = append(edits, s.prologue(f, left))
		f.define(&defined, left)
	}
	text := apply(s.Text, edits)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return append(text, "\n// The functions below mark regions for Mirador.\n"+defined.String()...), nil
}

// prologue declares the array of a function, and has its regions ended when the function is left.
func (s *goSource) prologue(f *goFunction, left string) edit {
	text := fmt.Sprintf(" var mirador_open [%d]bool; defer %s(&mirador_open);", len(f.regions), left)
	for _, r := range f.regions {
		if r.node() == f.node {
			text += r.begin()
		}
	}
	return edit{at: s.offset(f.body.Lbrace) + 1, depth: -1, text: text}
}

// define writes the function that ends the open regions of a function, inner ones first.
func (f *goFunction) define(b *strings.Builder, left string) {
	fmt.Fprintf(b, "\nfunc %s(open *[%d]bool) {\n", left, len(f.regions))
	inner := slices.SortedStableFunc(slices.Values(f.regions), func(a, b *goRegion) int { return b.at.depth - a.at.depth })
	for _, r := range inner {
		fmt.Fprintf(b, "\tif open[%d] {\n\t\tmirador_off_%s(&open[%[1]d])\n\t}\n", r.element, r.name)
	}
	b.WriteString("}\n")
}

// define writes the functions of a region. Those that mark it begin with an instruction of 5 bytes, which a jump can
// replace, and keep the argument in its register.
func (r *goRegion) define(b *strings.Builder, weaving string) {
	begins, ends := sir.GoMarks(weaving, r.at.name())
	fmt.Fprintf(b, "\nfunc mirador_on_%s(open *bool) *bool {\n\t*open = true\n\t%s(open)\n\treturn open\n}\n", r.name, begins)
	fmt.Fprintf(b, "\nfunc mirador_off_%s(open *bool) {\n\t*open = false\n\t%s(open)\n}\n", r.name, ends)
	for _, mark := range []string{begins, ends} {
		fmt.Fprintf(b, "\n//go:noinline\nfunc %s(open *bool) (*bool, int) {\n\treturn open, 1 << 30\n}\n", mark)
	}
	if r.value {
		fmt.Fprintf(b, "\nfunc mirador_call_%s[T any](open *bool, value T) T {\n\tmirador_off_%[1]s(open)\n\treturn value\n}\n", r.name)
	}
}

func (s *goSource) offset(p gotoken.Pos) int { return s.at.Offset(p) }

// region finds the syntax of a region and the function around it.
func (s *goSource) region(l *located, name string, functions *[]*goFunction) (*goRegion, error) {
	start, end, ok := l.extent(s.lines, len(s.Text))
	switch {
	case s.err != nil:
		return nil, s.err
	case len(l.name()) > longestID:
		return nil, errors.New("its id is too long")
	case !ok:
		return nil, errors.New("its text was not found")
	}
	r := &goRegion{goSource: s, at: l, path: s.around(start, end), name: name}
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
	i := slices.IndexFunc(*functions, func(f *goFunction) bool { return f.node == node })
	if i < 0 {
		i = len(*functions)
		*functions = append(*functions, &goFunction{node: node, body: body})
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
func (s *goSource) around(start, end int) (path []ast.Node) {
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
		if from == start && to == end && isGoRegion(n) {
			path = slices.Clone(open)
		}
		return true
	})
	return path
}

// isGoRegion reports whether structures have regions of a type of nodes.
func isGoRegion(n ast.Node) bool {
	switch n.(type) {
	case *ast.FuncDecl, *ast.FuncLit, *ast.CallExpr, *ast.BlockStmt, *ast.ForStmt, *ast.RangeStmt, *ast.IfStmt, *ast.SwitchStmt,
		*ast.TypeSwitchStmt, *ast.SelectStmt, *ast.CaseClause, *ast.CommClause, *ast.ReturnStmt, *ast.GoStmt, *ast.DeferStmt:
		return true
	}
	return false
}
