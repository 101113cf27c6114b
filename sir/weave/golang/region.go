package golang

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"mirador/sir/weave/woven"
)

// region is a region of a source in Go.
type region struct {
	*Source
	at      *woven.Region
	path    []ast.Node // the nodes around the region, outermost first, and its own
	name    string     // ends the names of functions for it
	element int        // of the array of its function
	value   bool       // the region is a call within an expression
}

func (r *region) node() ast.Node   { return r.path[len(r.path)-1] }
func (r *region) variable() string { return fmt.Sprintf("&mirador_open[%d]", r.element) }
func (r *region) begin() string    { return fmt.Sprintf(" mirador_on_%s(%s);", r.name, r.variable()) }
func (r *region) end() string      { return fmt.Sprintf("mirador_off_%s(%s)", r.name, r.variable()) }

// function returns the innermost function around the region, or the region itself if it is one.
func (r *region) function() (ast.Node, *ast.FuncType, *ast.BlockStmt) {
	for up := range r.path {
		switch f := r.parent(up).(type) {
		case *ast.FuncDecl:
			return f, f.Type, f.Body
		case *ast.FuncLit:
			return f, f.Type, f.Body
		}
	}
	return nil, nil, nil
}

// parent returns a node around the region: 0 is its own. There is none around the file.
func (r *region) parent(up int) ast.Node {
	if i := len(r.path) - 1 - up; i >= 0 {
		return r.path[i]
	}
	return nil
}

// edits returns what is inserted for the region. The error says why it cannot be woven.
func (r *region) edits() ([]woven.Edit, error) {
	switch n := r.node().(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return nil, nil // the prologue begins it
	case *ast.CallExpr:
		return r.call(n)
	case *ast.BlockStmt:
		return r.list(n.Lbrace, n.List), nil
	case *ast.CaseClause:
		return r.list(n.Colon, n.Body), nil
	case *ast.CommClause:
		return r.list(n.Colon, n.Body), nil
	}
	return r.statement(0)
}

// list begins the region behind a brace or colon, and ends it behind the last statement.
func (r *region) list(opening token.Pos, statements []ast.Stmt) []woven.Edit {
	begin := woven.Edit{At: r.offset(opening) + 1, Depth: r.at.Depth, Text: r.begin()}
	if len(statements) == 0 {
		begin.Text += " " + r.end() + ";"
		return []woven.Edit{begin}
	}
	edits := append(r.exits(), begin)
	if last := statements[len(statements)-1]; !ends(last, "") {
		edits = append(edits, r.behind(last, "; "+r.end()))
	}
	return edits
}

func (r *region) behind(n ast.Node, text string) woven.Edit {
	return woven.Edit{At: r.offset(n.End()), Depth: r.at.Depth, End: true, Text: text}
}

// statement begins the region before a statement, which is the region or around it, and ends it behind.
func (r *region) statement(up int) ([]woven.Edit, error) {
	own, label := r.parent(up), ""
	for {
		l, ok := r.parent(up + 1).(*ast.LabeledStmt)
		if !ok {
			break
		}
		if r.reached(l.Label.Name) {
			return nil, fmt.Errorf("a goto leads to its label %s", l.Label.Name)
		}
		if label == "" {
			label = l.Label.Name
		}
		up++
	}
	whole := r.parent(up)
	switch around := r.parent(up + 1).(type) {
	case *ast.BlockStmt:
	case *ast.CaseClause:
	case *ast.CommClause:
		if whole.Pos() < around.Colon {
			return nil, errPart
		}
	default:
		return nil, errPart
	}
	edits := append(r.exits(), woven.Edit{At: r.offset(whole.Pos()), Depth: r.at.Depth, Text: strings.TrimSpace(r.begin()) + " "})
	if s, ok := own.(ast.Stmt); ok && !ends(s, label) {
		edits = append(edits, r.behind(whole, "; "+r.end()))
	}
	return edits, nil
}

var errPart = errors.New("it is a part of another statement: measure that, or a region inside")

// reached reports whether a goto in the function leads to a label.
func (r *region) reached(label string) (reached bool) {
	_, _, body := r.function()
	ast.Inspect(body, func(n ast.Node) bool {
		b, ok := n.(*ast.BranchStmt)
		reached = reached || ok && b.Tok == token.GOTO && b.Label.Name == label
		return !reached
	})
	return reached
}

// call weaves a call: as a statement if it is one, or if it may have several values; otherwise as a value.
func (r *region) call(c *ast.CallExpr) ([]woven.Edit, error) {
	up := 1
	for {
		if _, ok := r.parent(up).(*ast.ParenExpr); !ok {
			break
		}
		up++
	}
	switch p := r.parent(up).(type) {
	case *ast.ExprStmt:
		return r.statement(up)
	case *ast.GoStmt, *ast.DeferStmt:
		return nil, errors.New("it is executed by another goroutine, or when its function returns: measure the function that it calls")
	case *ast.AssignStmt:
		if len(p.Lhs) > len(p.Rhs) {
			return r.statement(up)
		}
	case *ast.ReturnStmt:
		if _, f, _ := r.function(); f.Results.NumFields() > len(p.Results) {
			return r.statement(up)
		}
	case *ast.ValueSpec:
		if len(p.Names) > len(p.Values) {
			return r.statement(up + 2) // its declaration, and the statement
		}
	case *ast.CallExpr:
		if len(p.Args) == 1 && p.Args[0].Pos() <= c.Pos() && !p.Ellipsis.IsValid() && !takesOne(p.Fun) {
			return nil, errors.New("all arguments of another call are its values, perhaps several: measure a statement around it")
		}
	}
	if err := r.variableValue(c); err != nil {
		return nil, err
	}
	r.value = true
	before := fmt.Sprintf("mirador_call_%s(mirador_on_%[1]s(%s), ", r.name, r.variable())
	return []woven.Edit{{At: r.offset(c.Pos()), Depth: r.at.Depth, Text: before}, r.behind(c, ")")}, nil
}

// takesOne reports whether a function is known to have a single parameter: it is predeclared, or a conversion.
func takesOne(f ast.Expr) bool {
	i, ok := f.(*ast.Ident)
	if !ok {
		return false
	}
	_, conversion := types.Universe.Lookup(i.Name).(*types.TypeName)
	return conversion || slices.Contains([]string{"len", "cap", "panic", "close", "clear", "real", "imag"}, i.Name)
}

// variableValue refuses calls whose value may be a constant, and conversions of package unsafe, which only have a meaning
// where they are.
func (r *region) variableValue(c *ast.CallExpr) error {
	if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "unsafe" {
			return errors.New("it is no call of a function")
		}
	}
	for _, n := range r.path {
		d, ok := n.(*ast.GenDecl)
		if _, array := n.(*ast.ArrayType); array || ok && d.Tok == token.CONST {
			return errors.New("its value is a constant")
		}
	}
	return nil
}

// lastly is added to the depth of edits that come behind others at one place.
const lastly = 1 << 30

// exits ends the region before each statement that leaves it. A return whose values are computed by calls ends it when
// the function returns.
func (r *region) exits() (edits []woven.Edit) {
	var open []ast.Node
	ast.Inspect(r.node(), func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return false
		}
		if _, closure := n.(*ast.FuncLit); closure {
			return false
		}
		if r.leaves(n, open) {
			edits = append(edits, woven.Edit{At: r.offset(n.Pos()), Depth: lastly - r.at.Depth, Text: r.end() + "; "})
		}
		open = append(open, n)
		return true
	})
	return edits
}

// leaves reports whether a statement leaves the region, in which some nodes are around the statement.
func (r *region) leaves(n ast.Node, around []ast.Node) bool {
	if s, ok := n.(*ast.ReturnStmt); ok {
		return !slices.ContainsFunc(s.Results, calls)
	}
	b, ok := n.(*ast.BranchStmt)
	if !ok {
		return false
	}
	if b.Tok == token.GOTO {
		return !labelled(r.node(), b.Label.Name)
	}
	if b.Label != nil {
		if l, ok := r.parent(1).(*ast.LabeledStmt); ok && l.Label.Name == b.Label.Name {
			return false
		}
	}
	return !slices.ContainsFunc(around, func(n ast.Node) bool { return remains(b, n) })
}

// remains reports whether control stays inside a statement, or behind its end, after a branch inside.
func remains(b *ast.BranchStmt, in ast.Node) bool {
	if b.Label != nil {
		l, ok := in.(*ast.LabeledStmt)
		return ok && l.Label.Name == b.Label.Name
	}
	switch in.(type) {
	case *ast.ForStmt, *ast.RangeStmt:
		return b.Tok == token.BREAK || b.Tok == token.CONTINUE
	case *ast.SwitchStmt:
		return b.Tok == token.BREAK || b.Tok == token.FALLTHROUGH
	case *ast.TypeSwitchStmt, *ast.SelectStmt:
		return b.Tok == token.BREAK
	}
	return false
}

// labelled reports whether a label is in a node.
func labelled(in ast.Node, label string) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		l, ok := n.(*ast.LabeledStmt)
		found = found || ok && l.Label.Name == label
		return !found
	})
	return found
}

// calls reports whether functions may be called, or messages received, for a value.
func calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}
