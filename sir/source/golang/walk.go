package golang

import (
	"go/ast"
	"go/token"
	"strconv"

	"mirador/sir"
	"mirador/sir/source/outline"
)

type walker struct {
	*Parsed
	path  string
	facts *Facts
}

// unit is a function or a closure. The compiler numbers the closures inside.
type unit struct {
	symbol   string
	depth    int // number of closures around and one for a closure
	closures int
}

// mostClosures is the depth to which closures are read: their symbols grow with it.
const mostClosures = 50

// place is where regions belong. It is a visitor of go/ast.
type place struct {
	walker *walker
	unit   *unit
	into   *[]*outline.Node
	before bool // the loop around executes it once, before its first test
}

func (w *walker) visit(n ast.Node, p place) {
	p.walker = w
	ast.Walk(p, n)
}

// add adds a region and returns the place inside it.
func (p place) add(n *outline.Node) place {
	n.Before = p.before
	*p.into = append(*p.into, n)
	return place{walker: p.walker, unit: p.unit, into: &n.Nodes}
}

// all visits pieces of syntax that may be missing.
func (p place) all(list ...ast.Node) {
	for _, n := range list {
		if !missing(n) {
			ast.Walk(p, n)
		}
	}
}

func missing(n ast.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *ast.BlockStmt:
		return n == nil
	}
	return false
}

// Visit handles the syntax that regions are made of, and lets ast.Walk visit the rest.
func (p place) Visit(n ast.Node) ast.Visitor {
	w := p.walker
	switch n := n.(type) {
	case *ast.FuncLit:
		p.closure(n)
	case *ast.ForStmt:
		p.loop(n)
	case *ast.RangeStmt:
		loop := w.node(n, sir.Loop)
		loop.Form = "range"
		in := p.add(loop)
		before := in
		before.before = true
		before.all(n.X)
		in.all(n.Key, n.Value)
		in.body(n.Body)
	case *ast.IfStmt:
		p.branches(n)
	case *ast.SwitchStmt:
		in := p.choice(n, "switch")
		in.all(n.Init, n.Tag)
		in.clauses(n.Body)
	case *ast.TypeSwitchStmt:
		in := p.choice(n, "type")
		in.all(n.Init, n.Assign)
		in.clauses(n.Body)
	case *ast.SelectStmt:
		p.choice(n, "select").clauses(n.Body)
	case *ast.BlockStmt:
		p.statements(n.List)
	case *ast.LabeledStmt:
		p.statements([]ast.Stmt{n.Stmt})
	case *ast.CallExpr:
		return p.call(n)
	case *ast.ReturnStmt:
		return p.add(w.node(n, sir.Return))
	case *ast.GoStmt:
		return p.add(w.node(n, sir.Spawn))
	case *ast.DeferStmt:
		return p.add(w.node(n, sir.Deferred))
	case *ast.BadStmt:
		w.gap(n, "this statement was not understood")
	case *ast.BadExpr:
		w.gap(n, "this expression was not understood")
	default:
		return p
	}
	return nil
}

// closure names a function literal as the compiler does.
func (p place) closure(f *ast.FuncLit) {
	n := p.walker.node(f, sir.Lambda)
	suffix := ".func"
	switch {
	case p.unit.depth > mostClosures:
		p.walker.gap(f, "closures nested this deep are not read")
		return
	case p.unit.depth > 0:
		suffix = "."
	}
	p.unit.closures++
	n.Symbol = p.unit.symbol + suffix + strconv.Itoa(p.unit.closures)
	n.Name = n.Symbol
	in := p.add(n)
	in.unit = &unit{symbol: n.Symbol, depth: p.unit.depth + 1}
	in.all(f.Body)
}

func (p place) loop(f *ast.ForStmt) {
	n := p.walker.node(f, sir.Loop)
	switch {
	case f.Init != nil || f.Post != nil:
		n.Form = "for"
	case f.Cond != nil:
		n.Form = "while"
	default:
		n.Form = "forever"
	}
	if leavesLoop(f.Body) && !continues(f.Body) {
		n.Kind = sir.Block
	}
	in := p.add(n)
	before := in
	before.before = true
	before.all(f.Init)
	in.all(f.Cond, f.Post)
	if n.Kind == sir.Block {
		in.all(f.Body)
	} else {
		in.body(f.Body)
	}
}

// leavesLoop reports whether a body ends with a statement that leaves the loop.
func leavesLoop(b *ast.BlockStmt) bool {
	if b == nil || len(b.List) == 0 {
		return false
	}
	switch last := b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return last.Tok == token.BREAK
	}
	return false
}

// continues reports whether a body has a statement that may restart the loop.
func continues(b *ast.BlockStmt) (found bool) {
	ast.Inspect(b, func(n ast.Node) bool {
		if s, ok := n.(*ast.BranchStmt); ok && (s.Tok == token.CONTINUE || s.Tok == token.GOTO) {
			found = true
		}
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

func (p place) body(b *ast.BlockStmt) {
	if b != nil {
		p.add(p.walker.node(b, sir.Body)).all(b)
	}
}

// branches makes one region of a chain of if and else if.
func (p place) branches(s *ast.IfStmt) {
	in := p.add(p.walker.node(s, sir.If))
	for form := "then"; ; form = "else if" {
		in.all(s.Init, s.Cond)
		if s.Body != nil {
			in.branch(s.Body, form)
		}
		next, ok := s.Else.(*ast.IfStmt)
		if !ok {
			break
		}
		s = next
	}
	if s.Else != nil {
		in.branch(s.Else, "else")
	}
}

func (p place) branch(n ast.Node, form string) {
	b := p.walker.node(n, sir.Branch)
	b.Form = form
	p.add(b).all(n)
}

func (p place) choice(n ast.Node, form string) place {
	s := p.walker.node(n, sir.Switch)
	s.Form = form
	return p.add(s)
}

// clauses makes regions of the cases of a switch or select.
func (p place) clauses(b *ast.BlockStmt) {
	if b == nil {
		return
	}
	for _, s := range b.List {
		n := p.walker.node(s, sir.Branch)
		n.Form = "case"
		switch c := s.(type) {
		case *ast.CaseClause:
			if c.List == nil {
				n.Form = "default"
			}
			n.Falls = fallsThrough(c)
		case *ast.CommClause:
			if c.Comm == nil {
				n.Form = "default"
			}
		}
		in := p.add(n)
		switch c := s.(type) {
		case *ast.CaseClause:
			for _, e := range c.List {
				in.all(e)
			}
			in.statements(c.Body)
		case *ast.CommClause:
			if c.Comm != nil {
				in.all(c.Comm)
			}
			in.statements(c.Body)
		}
	}
}

// statements visits statements. A block that is no part of another one is a region.
func (p place) statements(list []ast.Stmt) {
	for _, s := range list {
		in := p
		if b, ok := s.(*ast.BlockStmt); ok {
			in = p.add(p.walker.node(b, sir.Scope))
		}
		in.all(s)
	}
}

// fallsThrough reports whether a clause goes on to the next one.
func fallsThrough(c *ast.CaseClause) bool {
	if len(c.Body) == 0 {
		return false
	}
	last, ok := c.Body[len(c.Body)-1].(*ast.BranchStmt)
	return ok && last.Tok == token.FALLTHROUGH
}
