package golang

import (
	"go/ast"
	"go/types"

	"mirador/sir"
)

// call makes a region of a call, and leaves out conversions and built-in functions without effect.
func (p place) call(c *ast.CallExpr) place {
	n := p.walker.node(c, sir.Call)
	fun := ast.Unparen(c.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = ast.Unparen(f.X)
	case *ast.IndexListExpr:
		fun = ast.Unparen(f.X)
	}
	switch f := fun.(type) {
	case *ast.Ident:
		if kind, form, ok := builtIn(f.Name); ok && !p.walker.facts.functions[f.Name] {
			if kind == "" {
				return p
			}
			n.Kind, n.Form = kind, form
			break
		}
		if p.walker.facts.types[f.Name] {
			return p
		}
		n.Callee, n.CalleeSymbol = f.Name, "*"
		if p.walker.facts.functions[f.Name] {
			n.CalleeSymbol = p.walker.path + "." + f.Name
		}
	case *ast.SelectorExpr:
		n.Callee = types.ExprString(f)
		n.CalleeSymbol = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok && p.walker.imports[x.Name] != "" {
			n.CalleeSymbol = symbolPath(p.walker.imports[x.Name]) + "." + f.Sel.Name
		}
		n.Form = form(n.CalleeSymbol, len(c.Args))
	case *ast.FuncLit:
		n.Callee, n.CalleeSymbol = "func", "*"
	case *ast.ArrayType, *ast.MapType, *ast.ChanType, *ast.FuncType, *ast.InterfaceType, *ast.StructType, *ast.StarExpr:
		return p // a conversion
	default:
		n.Callee, n.CalleeSymbol = "*", "*"
	}
	return p.add(n)
}

// builtIn returns what a predeclared function or type does when it is called.
func builtIn(name string) (kind sir.Kind, form string, ok bool) {
	switch name {
	case "panic":
		return sir.Throw, "", true
	case "make", "new", "append":
		return sir.Allocation, name, true
	}
	return "", "", types.Universe.Lookup(name) != nil
}

// form returns what a function is known to do.
func form(symbol string, args int) string {
	switch symbol {
	case "Lock", "RLock", "TryLock":
		if args == 0 {
			return "lock"
		}
	case "Unlock", "RUnlock":
		if args == 0 {
			return "unlock"
		}
	case "fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln", "fmt.Scan", "fmt.Scanf", "fmt.Scanln",
		"fmt.Fscan", "fmt.Fscanf", "fmt.Fscanln", "io.Copy", "io.ReadAll", "io.ReadFull", "os.ReadFile", "os.WriteFile", "os.Open", "os.Create":
		return "io"
	}
	return ""
}
