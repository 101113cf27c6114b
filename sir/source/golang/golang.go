// Package golang finds the units and regions of Go sources.
//
// It imports sir and the outline of files. Read starts no goroutines and may be called concurrently.
package golang

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

const mostErrors = 1000

// Facts are what the files of one package share.
type Facts struct {
	functions map[string]bool
	types     map[string]bool
	inits     int
	variables unit // the function that initialises the variables
}

// Parsed is a file before its regions are found.
type Parsed struct {
	file    *outline.File
	syntax  *ast.File
	at      *token.File
	imports map[string]string // paths by name
}

// Parse parses a file. Errors become gaps.
func Parse(f *outline.File) *Parsed {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, f.Path, f.Text, parser.SkipObjectResolution|parser.AllErrors)
	p := &Parsed{file: f, syntax: syntax, imports: map[string]string{}}
	if syntax != nil && syntax.FileStart.IsValid() {
		p.at = set.File(syntax.FileStart)
	}
	var list scanner.ErrorList
	if errors.As(err, &list) {
		for i, e := range list {
			if i == mostErrors {
				break
			}
			f.Miss(e.Pos.Offset, e.Pos.Offset+1, e.Msg)
		}
	} else if err != nil {
		f.Miss(0, len(f.Text), err.Error())
	}
	if p.at == nil {
		return p
	}
	for _, i := range syntax.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		p.imports[name] = path
	}
	return p
}

// Package returns the name of the file's package, "" if the file has none.
func (p *Parsed) Package() string {
	if p.syntax == nil || p.syntax.Name == nil {
		return ""
	}
	return p.syntax.Name.Name
}

// Declare adds the functions and types of a file to what its package has.
func (x *Facts) Declare(p *Parsed) {
	if x.functions == nil {
		x.functions, x.types = map[string]bool{}, map[string]bool{}
	}
	if p.at == nil {
		return
	}
	for _, d := range p.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				x.functions[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					x.types[t.Name.Name] = true
				}
			}
		}
	}
}

// Outline finds the units and regions of a file. path is the import path of its package in symbols.
func (p *Parsed) Outline(path string, x *Facts) {
	if p.at == nil {
		return
	}
	w := &walker{Parsed: p, path: symbolPath(path), facts: x}
	for _, d := range p.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			w.function(d)
		case *ast.BadDecl:
			p.gap(d, "this declaration was not understood")
		default: // closures of variables
			x.variables.symbol = w.path + ".init"
			w.visit(d, place{unit: &x.variables, into: &p.file.Nodes})
		}
	}
}

// symbolPath returns an import path as symbols contain it: the dots of its last element are escaped.
func symbolPath(path string) string {
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i] + strings.ReplaceAll(path[i:], ".", "%2e")
}

func (p *Parsed) span(n ast.Node) (start, end int) {
	size := len(p.file.Text)
	offset := func(at token.Pos) int {
		if !at.IsValid() {
			return 0
		}
		return min(p.at.Offset(at), size)
	}
	return offset(n.Pos()), offset(n.End())
}

func (p *Parsed) gap(n ast.Node, reason string) {
	start, end := p.span(n)
	p.file.Miss(start, end, reason)
}

func (w *walker) function(d *ast.FuncDecl) {
	if d.Name.Name == "_" {
		return // it is not compiled
	}
	n := w.node(d, sir.Function)
	n.Name, n.Symbol = d.Name.Name, w.path+"."+d.Name.Name
	if d.Recv != nil && len(d.Recv.List) > 0 {
		n.Kind = sir.Method
		receiver := receiverType(d.Recv.List[0].Type)
		n.Name = receiver + "." + n.Name
		n.Symbol = w.path + "." + n.Name
	} else if d.Name.Name == "init" {
		n.Symbol += "." + strconv.Itoa(w.facts.inits)
		w.facts.inits++
	}
	if d.Type.TypeParams != nil {
		n.Symbol += "[...]"
	}
	if d.Body == nil {
		n.Unknown = "the function has no body in Go"
	} else {
		w.visit(d.Body, place{unit: &unit{symbol: n.Symbol}, into: &n.Nodes})
	}
	w.file.Nodes = append(w.file.Nodes, n)
}

// receiverType returns the type of a receiver as symbols contain it.
func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return receiverType(e.X)
	case *ast.StarExpr:
		return "(*" + receiverType(e.X) + ")"
	case *ast.IndexExpr:
		return receiverType(e.X) + "[...]"
	case *ast.IndexListExpr:
		return receiverType(e.X) + "[...]"
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// node makes a region of a piece of syntax.
func (p *Parsed) node(n ast.Node, kind sir.Kind) *outline.Node {
	start, end := p.span(n)
	return &outline.Node{Kind: kind, Start: start, End: end}
}
