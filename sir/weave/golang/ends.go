package golang

import (
	"go/ast"
	"go/token"
)

// ends reports whether control never reaches the end of a statement, which may have a label. Code behind it would not
// be executed, and a function could not end there.
func ends(s ast.Stmt, label string) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		c, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		f, ok := c.Fun.(*ast.Ident)
		return ok && f.Name == "panic"
	case *ast.BlockStmt:
		return endsList(s.List)
	case *ast.IfStmt:
		return s.Else != nil && ends(s.Body, "") && ends(s.Else, "")
	case *ast.ForStmt:
		return s.Cond == nil && !breaks(s.Body, label)
	case *ast.SwitchStmt:
		return endsAll(s.Body, true) && !breaks(s.Body, label)
	case *ast.TypeSwitchStmt:
		return endsAll(s.Body, true) && !breaks(s.Body, label)
	case *ast.SelectStmt:
		return endsAll(s.Body, false) && !breaks(s.Body, label)
	case *ast.LabeledStmt:
		return ends(s.Stmt, s.Label.Name)
	}
	return false
}

func endsList(list []ast.Stmt) bool { return len(list) > 0 && ends(list[len(list)-1], "") }

// endsAll reports whether no clause of a switch or select reaches its end. A switch needs a default clause.
func endsAll(body *ast.BlockStmt, needsDefault bool) bool {
	for _, s := range body.List {
		switch c := s.(type) {
		case *ast.CaseClause:
			needsDefault = needsDefault && c.List != nil
			if !endsList(c.Body) {
				return false
			}
		case *ast.CommClause:
			if !endsList(c.Body) {
				return false
			}
		}
	}
	return !needsDefault
}

// breaks reports whether a break inside the body of a statement ends that statement, which may have a label.
func breaks(body *ast.BlockStmt, label string) (found bool) {
	var open []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return false
		}
		if _, closure := n.(*ast.FuncLit); closure || found {
			return false
		}
		if b, ok := n.(*ast.BranchStmt); ok && b.Tok == token.BREAK {
			inner := false
			for _, around := range open {
				inner = inner || remains(b, around)
			}
			found = b.Label != nil && b.Label.Name == label || b.Label == nil && !inner
		}
		open = append(open, n)
		return true
	})
	return found
}
