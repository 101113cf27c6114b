// Package fortran finds the units and regions of Fortran sources, in fixed and in free form.
//
// It is a scanner of statements, not a compiler: it knows the statements that begin and end units and
// constructs, and skips the others. Ids follow the symbols of gfortran. Statements tells what each statement does to
// control.
//
// The package imports sir and the outline of files. It starts no goroutines, and its functions may be
// called concurrently for different files.
package fortran

import (
	"path"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// Facts are what the files of a program share: the procedures that they define.
type Facts struct {
	procedures map[string]bool            // that are external
	functions  map[string]bool            // names of functions, of any unit
	modules    map[string]map[string]bool // names of procedures by module
}

// pending is a call whose callee may be defined behind it.
type pending struct {
	node *outline.Node
	unit *unit
	name string
}

// Fixed reports whether the name of a file is one of fixed form.
func Fixed(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".f", ".for", ".ftn", ".f77", ".fpp":
		return true
	}
	return false
}

// Declare adds the procedures of a file to what the program has.
func (x *Facts) Declare(f *outline.File) {
	if x.procedures == nil {
		x.procedures, x.functions, x.modules = map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
	}
	d := &declarations{facts: x}
	(&reader{file: f.Text, fixed: Fixed(f.Path), to: d}).read()
}

// Parse finds the units and regions of a file.
func Parse(f *outline.File, x *Facts) {
	p := &parser{file: f, facts: x, frames: []*frame{{kind: fileFrame, nodes: &f.Nodes}}}
	(&reader{file: f.Text, fixed: Fixed(f.Path), to: p}).read()
	p.end()
	for _, c := range p.calls {
		c.node.CalleeSymbol = c.unit.symbolOf(c.name, x)
	}
}

// unit is a program unit: what names mean inside depends on it.
type unit struct {
	kind     sir.Kind
	name     string
	outer    *unit
	uses     []string
	internal map[string]string // symbols of the procedures inside
	labels   map[string]bool
}

// symbol returns the symbol that gfortran gives a unit, "" for a module, and for a procedure inside
// another one: its symbol is its name and a number that the source does not tell.
func (u *unit) symbol(bound string) string {
	switch {
	case u.kind == sir.MainProgram:
		return "MAIN__"
	case u.kind == sir.Module:
		return ""
	case bound != "":
		return bound
	case u.outer == nil:
		return u.name + "_"
	case u.outer.kind == sir.Module:
		return "__" + u.outer.name + "_MOD_" + u.name
	}
	return ""
}

// symbolOf returns the symbol of a procedure that is called in a unit.
func (u *unit) symbolOf(name string, x *Facts) string {
	for at := u; at != nil; at = at.outer {
		if s, ok := at.internal[name]; ok {
			return s
		}
		if at.kind == sir.Module && x.modules[at.name][name] {
			return "__" + at.name + "_MOD_" + name
		}
		for _, m := range at.uses {
			if x.modules[m][name] {
				return "__" + m + "_MOD_" + name
			}
		}
	}
	return name + "_"
}

// declarations collects the procedures of a file.
type declarations struct {
	facts *Facts
	open  []header
	skip  int // depth of interfaces
}

func (d *declarations) statement(s *statement) {
	switch h := headerOf(s); {
	case strings.HasPrefix(s.text, "interface") || s.text == "abstractinterface":
		if _, isAssignment := assignment(s.text); !isAssignment {
			d.skip++
		}
	case strings.HasPrefix(s.text, "endinterface"):
		d.skip = max(0, d.skip-1)
	case d.skip > 0:
	case h.kind != "":
		d.declare(h)
		if len(d.open) < outline.MostDepth {
			d.open = append(d.open, h)
		}
	case endsUnit(s.text) && len(d.open) > 0:
		d.open = d.open[:len(d.open)-1]
	}
}

func (d *declarations) declare(h header) {
	if h.function {
		d.facts.functions[h.name] = true
	}
	switch {
	case h.kind == sir.Module || h.kind == sir.MainProgram:
	case len(d.open) == 0:
		d.facts.procedures[h.name] = true
	case d.open[len(d.open)-1].kind == sir.Module:
		m := d.open[len(d.open)-1].name
		if d.facts.modules[m] == nil {
			d.facts.modules[m] = map[string]bool{}
		}
		d.facts.modules[m][h.name] = true
	}
}

func (*declarations) directive(string, int, int)    {}
func (*declarations) preprocessor(string, int, int) {}
func (*declarations) damaged(int, int, string)      {}
