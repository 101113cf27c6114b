package grammar

import (
	"strconv"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// separator is between the names of classes and what they contain.
func (l *language) separator() string {
	if l.java {
		return "."
	}
	return "::"
}

// class makes a unit of a class or namespace with functions.
func (w *walker) class(i int, s *scope, into *[]*outline.Node) {
	body := w.field(i, "body")
	if body < 0 || !w.hasUnits(i) {
		w.inside(i, s, into)
		return
	}
	n := w.node(i, sir.Class, "")
	if w.role(i) == namespace {
		n.Kind = sir.Module
	}
	inner := scope{inClass: true, template: s.template, unnamed: s.unnamed}
	if inner.unnamed == nil {
		inner.unnamed = new(int)
	}
	if name := w.field(i, "name"); name >= 0 {
		n.Name = w.prefix(s) + plainName(w.source(name))
	} else if n.Kind == sir.Module {
		n.Name = w.prefix(s) + "(anonymous namespace)"
	}
	inner.names = n.Name + w.separator()
	w.add(n, into)
	w.inside(i, &inner, &n.Nodes)
}

func (w *walker) prefix(s *scope) string {
	if s.names == "" {
		return w.pack
	}
	return s.names
}

// plainName returns a name without the blanks and arguments of templates around it.
func plainName(name string) string {
	return strings.Join(strings.Fields(name), " ")
}

// unnamedClass makes a unit of a class without a name, as Java's new has it.
func (w *walker) unnamedClass(i int, s *scope, into *[]*outline.Node) {
	number := new(int)
	if s.unnamed != nil {
		number = s.unnamed
	}
	*number++
	outer, _, _ := strings.Cut(strings.TrimSuffix(s.names, "."), "$")
	n := w.node(i, sir.Class, "unnamed")
	n.Name = outer + "$" + strconv.Itoa(*number)
	w.add(n, into)
	w.inside(i, &scope{names: n.Name + ".", inClass: true, unnamed: number}, &n.Nodes)
}

// function makes a unit of a function, method or lambda.
func (w *walker) function(i int, r role, s *scope, into *[]*outline.Node) {
	n := w.node(i, sir.Function, "")
	inner := &scope{names: s.names, c: s.c, function: true, values: map[string]bool{}, labels: map[string]bool{}, unnamed: s.unnamed}
	switch {
	case r == lambda:
		n.Kind = sir.Lambda
		if s.values != nil {
			inner.values = s.values
		}
	case w.java:
		w.javaMethod(i, n, r, s)
	default:
		if name := w.declared(i); name == "" {
			w.file.Miss(n.Start, n.Start+1, "the name of this function was not understood")
			n.Name = "?"
		} else {
			w.nameFunction(n, name, s)
		}
		if s.template {
			n.Form = "template"
		}
		for c := range w.children(i) {
			n.Static = n.Static || w.role(c) == storage && w.source(c) == "static" && !s.inClass
		}
	}
	if w.field(i, "body") < 0 && r != lambda && r != initializer {
		if w.java || strings.HasSuffix(w.source(i), ";") {
			return // it is declared here, deleted or a default
		}
	}
	w.variables(i+1, i+int(w.list[i].size), inner.values, false)
	w.inside(i, inner, &w.add(n, into).Nodes)
}

// nameFunction names a function of C or C++.
func (w *walker) nameFunction(n *outline.Node, name string, s *scope) {
	n.Name = name
	if w.cpp {
		n.Name = s.names + name
		if strings.Contains(n.Name, "::") {
			n.Kind = sir.Method
		}
		if !s.c && n.Name != "main" {
			return // the compiler adds the types of parameters
		}
	}
	if s.function {
		return // of GNU C, inside another one: the symbol has a number
	}
	n.Symbol = name
}

// declared returns the name of a function: what is before its parameters.
func (w *walker) declared(i int) string {
	for c := w.field(i, "declarator"); c >= 0; c = w.innerDeclarator(c) {
		if w.role(c) != functionDeclarator {
			continue
		}
		if inner := w.functionInside(c); inner >= 0 {
			c = inner
		}
		parameters := w.field(c, "parameters")
		if parameters < 0 {
			return ""
		}
		from, _ := w.at(c)
		to, _ := w.at(parameters)
		return strings.Trim(strings.Join(strings.Fields(string(w.text[from:max(from, to)])), " "), "()*& ")
	}
	if c := w.field(i, "declarator"); c >= 0 && w.cpp { // operator T()
		name, _, _ := strings.Cut(w.source(c), "(")
		return strings.Join(strings.Fields(name), " ")
	}
	return ""
}

func (w *walker) innerDeclarator(i int) int {
	if c := w.field(i, "declarator"); c >= 0 {
		return c
	}
	for c := range w.children(i) {
		if w.role(c) == functionDeclarator || w.role(c) == pointerDeclarator {
			return c
		}
	}
	return -1
}

// functionInside returns the innermost declarator of a function inside another one: a function that
// returns a pointer to a function has two.
func (w *walker) functionInside(i int) int {
	found := -1
	for c := w.innerDeclarator(i); c >= 0; c = w.innerDeclarator(c) {
		if w.role(c) == functionDeclarator {
			found = c
		}
	}
	return found
}

// javaMethod names a method of Java by its parameters, because methods of one name are common.
func (w *walker) javaMethod(i int, n *outline.Node, r role, s *scope) {
	n.Kind = sir.Method
	name := "<clinit>"
	if c := w.field(i, "name"); c >= 0 {
		name = w.source(c)
		if w.field(i, "type") < 0 {
			name = "<init>"
		}
	}
	var types []string
	if list := w.field(i, "parameters"); list >= 0 {
		for c := range w.children(list) {
			if w.role(c) != parameter {
				continue
			}
			t, _, variable := strings.Cut(w.source(c), "...")
			if f := w.field(c, "type"); f >= 0 {
				t = w.source(f)
			} else if variable {
				t += "[]"
			}
			t, _, _ = strings.Cut(t, "<")
			types = append(types, plainName(t))
		}
	}
	n.Name = s.names + name + "(" + strings.Join(types, ",") + ")"
}

// variables collects the names of variables, because a call of one calls what its value points to.
// Functions that are declared are none.
func (w *walker) variables(from, to int, into map[string]bool, outside bool) {
	if w.java {
		return
	}
	for i := from; i < to && i < len(w.list); i++ {
		r := w.role(i)
		if outside && r == function {
			i += int(w.list[i].size) - 1
			continue
		}
		if r != declaration && r != parameter {
			continue
		}
		for c := range w.children(i) {
			if w.fieldOf(c) == "declarator" {
				w.variable(c, into)
			}
		}
	}
}

// variable adds the name of a declarator, except that of a function.
func (w *walker) variable(i int, into map[string]bool) {
	function, pointer := false, false
	for depth := 0; depth < mostDeclarators; depth++ {
		function = function || w.role(i) == functionDeclarator
		pointer = function && (pointer || w.role(i) == pointerDeclarator)
		inner := w.innerDeclarator(i)
		if inner < 0 {
			break
		}
		i = inner
	}
	if !function || pointer {
		name := strings.Trim(w.source(i), "()*& \t\n")
		name, _, _ = strings.Cut(name, "[")
		if len(name) < longestName {
			into[name] = true
		}
	}
}

const (
	mostDeclarators = 20
	longestName     = 200
)
