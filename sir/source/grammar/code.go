package grammar

import (
	"regexp"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// loop makes a region of a loop, and one of its body.
func (w *walker) loop(i int, r role, s *scope, into *[]*outline.Node) {
	n := w.node(i, sir.Loop, map[role]string{loopFor: "for", loopRange: "range", loopWhile: "while", loopDo: "do"}[r])
	body := w.field(i, "body")
	if r == loopDo && w.constant(w.field(i, "condition")) == "0" || body >= 0 && w.leaves(body) && !w.repeats(body) {
		n.Kind = sir.Block // it is executed once
	} else if condition := w.field(i, "condition"); r == loopFor && condition < 0 || r == loopWhile && w.constant(condition) == "1" {
		n.Form = "forever"
	}
	w.add(n, into)
	for c := range w.children(i) {
		before := len(n.Nodes)
		switch field := w.fieldOf(c); {
		case field == "body" && n.Kind == sir.Loop:
			b := w.add(w.node(c, sir.Body, ""), &n.Nodes)
			w.visit(c, c+int(w.list[c].size), s, &b.Nodes)
			continue
		default:
			w.visit(c, c+int(w.list[c].size), s, &n.Nodes)
			if field == "initializer" || field == "init" || r == loopRange && (field == "right" || field == "value") {
				first(n.Nodes[before:])
			}
		}
	}
}

// first marks regions that a loop executes once, before its first test.
func first(nodes []*outline.Node) {
	for _, n := range nodes {
		n.Before = true
		if !outline.IsUnit(n.Kind) {
			first(n.Nodes)
		}
	}
}

// constant returns the value of a condition: 0, 1, or "" if it is not constant.
func (w *walker) constant(i int) string {
	if i < 0 {
		return ""
	}
	switch strings.Trim(w.source(i), "() \t") {
	case "0", "false":
		return "0"
	case "1", "true":
		return "1"
	}
	return ""
}

// leaves reports whether a body ends with a statement that leaves the loop.
func (w *walker) leaves(body int) bool {
	last := body
	for c := range w.children(body) {
		last = c
	}
	switch w.role(last) {
	case leave, returns, throws:
		return true
	}
	return false
}

// repeats reports whether a body has a statement that may restart the loop.
func (w *walker) repeats(body int) bool {
	for c := body; c < body+int(w.list[body].size) && c < len(w.list); c++ {
		if r := w.role(c); r == repeat || r == jump {
			return true
		}
	}
	return false
}

// branches makes one region of a chain of if and else if.
func (w *walker) branches(i int, s *scope, into *[]*outline.Node) {
	n := w.add(w.node(i, sir.If, ""), into)
	for form := "then"; i >= 0; form = "else if" {
		next := -1
		for c := range w.children(i) {
			switch w.fieldOf(c) {
			case "consequence":
				w.branch(c, form, s, &n.Nodes)
			case "alternative":
				if next = w.elseIf(c); next < 0 {
					w.branch(w.otherwise(c), "else", s, &n.Nodes)
				}
			default:
				w.visit(c, c+int(w.list[c].size), s, &n.Nodes)
			}
		}
		i = next
	}
}

// otherwise returns the statement behind else.
func (w *walker) otherwise(i int) int {
	if w.role(i) == elseClause {
		for c := range w.children(i) {
			return c
		}
	}
	return i
}

// elseIf returns the if statement behind else, -1 if another one is there.
func (w *walker) elseIf(i int) int {
	if c := w.otherwise(i); w.role(c) == ifStatement {
		return c
	}
	return -1
}

func (w *walker) branch(i int, form string, s *scope, into *[]*outline.Node) {
	b := w.add(w.node(i, sir.Branch, form), into)
	b.Empty = nothing.MatchString(w.source(i))
	if w.role(i) == elseClause {
		w.inside(i, s, &b.Nodes)
	} else {
		w.visit(i, i+int(w.list[i].size), s, &b.Nodes)
	}
}

// choice makes a region of a switch, and one of each of its cases.
func (w *walker) choice(i int, s *scope, into *[]*outline.Node) {
	n := w.add(w.node(i, sir.Switch, "switch"), into)
	body := w.field(i, "body")
	for c := range w.children(i) {
		if c != body {
			w.visit(c, c+int(w.list[c].size), s, &n.Nodes)
			continue
		}
		for c, end := body+1, body+int(w.list[body].size); c < end && c < len(w.list); {
			rule := w.role(c) == switchRule
			if !rule && w.role(c) != switchCase {
				c = w.visit(c, end, s, &n.Nodes)
				continue
			}
			form := "case"
			if strings.HasPrefix(w.source(c), "default") {
				form = "default"
			}
			b := w.add(w.node(c, sir.Branch, form), &n.Nodes)
			b.Falls = !rule && w.falls(c)
			b.Empty = nothing.MatchString(w.source(c)[w.label(c):])
			if rule {
				w.inside(c, s, &b.Nodes)
			} else {
				w.statements(c, s, &b.Nodes)
			}
			c += int(w.list[c].size)
		}
	}
}

// nothing matches the text of branches that only end.
var nothing = regexp.MustCompile(`^(\s|[{};]|break\b|continue\b|/\*([^*]|\*+[^*/])*\*+/|//.*)*$`)

// label returns the length of the label that begins a branch of a switch.
func (w *walker) label(i int) int {
	start, _ := w.at(i)
	end := start
	if value := w.field(i, "value"); value >= 0 {
		_, end = w.at(value)
	}
	return end - start + strings.IndexByte(string(w.text[end:start+len(w.source(i))]), ':') + 1
}

// falls reports whether control may go on behind the last statement of a branch or block.
func (w *walker) falls(i int) bool {
	last := -1
	for c := range w.children(i) {
		last = c
	}
	if last < 0 {
		return true
	}
	switch w.role(last) {
	case leave, returns, throws, repeat, jump:
		return false
	case statement, braces, label:
		return w.falls(last)
	}
	return true
}

// try makes a region of a try statement, and of its parts.
func (w *walker) try(i int, s *scope, into *[]*outline.Node) {
	n := w.add(w.node(i, sir.Try, ""), into)
	for c := range w.children(i) {
		switch w.role(c) {
		case catch, finally:
			kind := sir.Catch
			if w.role(c) == finally {
				kind = sir.Finally
			}
			w.inside(c, s, &w.add(w.node(c, kind, ""), &n.Nodes).Nodes)
		default:
			if w.fieldOf(c) == "body" {
				w.branch(c, "body", s, &n.Nodes)
			} else {
				w.visit(c, c+int(w.list[c].size), s, &n.Nodes)
			}
		}
	}
}

// statements makes regions of all pieces inside a list of statements, and of blocks that are no part of another statement.
func (w *walker) statements(i int, s *scope, into *[]*outline.Node) {
	for c, end := i+1, i+int(w.list[i].size); c < end && c < len(w.list); {
		inner := into
		if w.role(c) == braces && s.function {
			inner = &w.add(w.node(c, sir.Scope, ""), into).Nodes
		}
		c = w.visit(c, end, s, inner)
	}
}

// call makes a region of a call, and of what creates and destroys objects.
func (w *walker) call(i int, r role, s *scope, into *[]*outline.Node) {
	n := w.node(i, sir.Call, "")
	switch r {
	case create:
		n.Kind, n.Form = sir.Allocation, "new"
	case destroy:
		n.Kind, n.Form = sir.Allocation, "delete"
	case methodCall:
		w.javaCall(i, n)
	default:
		w.callee(i, n, s)
	}
	w.add(n, into)
	for c := range w.children(i) {
		if r == create && w.role(c) == statement && w.java { // the body of a class
			w.unnamedClass(c, s, &n.Nodes)
		} else {
			w.visit(c, c+int(w.list[c].size), s, &n.Nodes)
		}
	}
}

// callee finds out what a call of C or C++ calls.
func (w *walker) callee(i int, n *outline.Node, s *scope) {
	f := w.field(i, "function")
	if w.java {
		n.Callee = "<init>"
		return
	}
	if f < 0 {
		n.Callee, n.CalleeSymbol = "*", "*"
		return
	}
	name := strings.Join(strings.Fields(w.source(f)), " ")
	n.Callee = name
	if len(name) > longestName {
		n.Callee = name[:longestName]
	}
	switch {
	case isName(name) && !s.values[name] && !w.values[name]:
		n.Form = outline.Does(name)
	case w.cpp && !s.values[name] && !w.values[name]:
		n.CalleeSymbol = lastName(name)
	default:
		n.CalleeSymbol = "*"
	}
}

// lastName returns the name of a method in what calls it, * if there is none.
func lastName(callee string) string {
	name := callee
	for _, sign := range []string{"->", ".", "::"} {
		if i := strings.LastIndex(name, sign); i >= 0 {
			name = name[i+len(sign):]
		}
	}
	if name, _, _ = strings.Cut(name, "<"); isName(name) {
		return name
	}
	return "*"
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' || s[i] == '_' || s[i] == '$' || s[i] >= 0x80 || i > 0 && s[i] >= '0' && s[i] <= '9') {
			return false
		}
	}
	return s != ""
}

func (w *walker) javaCall(i int, n *outline.Node) {
	name, object := "", ""
	if c := w.field(i, "name"); c >= 0 {
		name = w.source(c)
	}
	if c := w.field(i, "object"); c >= 0 && int(w.list[c].end-w.list[c].start) < longestName {
		object = strings.Join(strings.Fields(w.source(c)), " ")
	}
	n.Callee, n.CalleeSymbol = name, name
	if object != "" {
		n.Callee = object + "." + name
	}
	switch {
	case object == "System.out" || object == "System.err":
		n.Form = "io"
	case name == "lock" || name == "unlock":
		n.Form = name
	}
}
