package grammar

import (
	"bytes"
	"context"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// walker makes regions of the pieces of a file.
type walker struct {
	*language
	file   *outline.File
	text   []byte // as it was parsed
	list   []piece
	facts  *Facts
	values map[string]bool // variables of the file that are called through
	pack   string          // the package of Java
	count  int
}

// scope is what the names of units and the meaning of calls depend on.
type scope struct {
	names    string          // of the classes and namespaces around, with the sign that separates them
	c        bool            // functions have the symbols of C
	inClass  bool            // directly
	template bool            // of functions or classes
	function bool            // inside one
	values   map[string]bool // its variables
	labels   map[string]bool // that are before
	unnamed  *int            // number of classes without names in the outermost class
}

// Parse finds the units and regions of a file. The error is that of ctx.
func Parse(ctx context.Context, f *outline.File, x *Facts) error {
	l := languages[f.Language]()
	text, begin := x.masked(f)
	w := &walker{language: l, file: f, text: text, facts: x, values: map[string]bool{}}
	list, err := l.parse(ctx, w.text)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.Miss(0, len(f.Text), err.Error())
	}
	w.list = list
	if len(list) == 0 {
		return nil
	}
	w.variables(0, len(list), w.values, true)
	s := &scope{c: !l.cpp && !l.java}
	w.gaps(0)
	w.inside(0, s, &f.Nodes)
	for _, at := range begin {
		nameMacro(f.Nodes, at)
	}
	return nil
}

// at returns where the text of a piece begins and ends, without blanks around.
func (w *walker) at(i int) (start, end int) {
	p := &w.list[i]
	start, end = min(int(p.start), len(w.text)), min(int(p.end), len(w.text))
	text := w.text[start:max(start, end)]
	end = start + len(bytes.TrimRight(text, " \t\r\n\f\v"))
	return start + len(text[:end-start]) - len(bytes.TrimLeft(text[:end-start], " \t\r\n\f\v")), end
}

func (w *walker) source(i int) string {
	start, end := w.at(i)
	return string(w.text[start:end])
}

func (w *walker) role(i int) role {
	if s := int(w.list[i].symbol); s < len(w.roles) {
		return w.roles[s]
	}
	return none
}

// field returns the piece inside another one with a field's name, -1 if there is none.
func (w *walker) field(i int, name string) int {
	for c := range w.children(i) {
		if w.fieldOf(c) == name {
			return c
		}
	}
	return -1
}

func (w *walker) fieldOf(i int) string { return w.named[w.list[i].field] }

// children returns the pieces directly inside another one.
func (w *walker) children(i int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for c, end := i+1, i+int(w.list[i].size); c < end && c < len(w.list); c += int(w.list[c].size) {
			if !yield(c) {
				return
			}
		}
	}
}

// inside makes regions of all pieces inside another one.
func (w *walker) inside(i int, s *scope, into *[]*outline.Node) {
	for c, end := i+1, i+int(w.list[i].size); c < end && c < len(w.list); {
		c = w.visit(c, end, s, into)
	}
}

func (w *walker) node(i int, kind sir.Kind, form string) *outline.Node {
	start, end := w.at(i)
	return &outline.Node{Kind: kind, Form: form, Start: start, End: end}
}

// add adds a region. Further regions than a structure may have are left out.
func (w *walker) add(n *outline.Node, into *[]*outline.Node) *outline.Node {
	if w.count++; w.count <= outline.MostRegions+1 {
		*into = append(*into, n)
	}
	return n
}

// gaps records that a piece was not understood.
func (w *walker) gaps(i int) {
	start, end := w.at(i)
	switch p := &w.list[i]; {
	case p.flags&pieceMissing != 0:
		w.file.Miss(start, start+1, "something is missing here")
	case p.flags&pieceError != 0:
		w.file.Miss(start, end, "this was not understood")
	case p.flags&pieceDeep != 0:
		w.file.Miss(start, end, "what is inside is nested too deep")
	}
}

// visit makes regions of a piece, and returns the next one. end is behind its siblings.
func (w *walker) visit(i, end int, s *scope, into *[]*outline.Node) (next int) {
	next = i + int(w.list[i].size)
	if w.list[i].flags != 0 {
		w.gaps(i)
	}
	switch r := w.role(i); r {
	case function, method, lambda, initializer:
		w.function(i, r, s, into)
	case class, namespace:
		w.class(i, s, into)
	case linkage:
		inner := *s
		inner.c = strings.Contains(w.source(w.field(i, "value")), `"C"`)
		w.inside(i, &inner, into)
	case template:
		inner := *s
		inner.template = true
		w.inside(i, &inner, into)
	case loopFor, loopRange, loopWhile, loopDo:
		w.loop(i, r, s, into)
	case ifStatement:
		w.branches(i, s, into)
	case switchStatement:
		w.choice(i, s, into)
	case try:
		w.try(i, s, into)
	case pragma:
		return w.pragma(i, end, s, into)
	case include, packaging, conditional, otherBranch:
		w.preprocessor(i, r, s, into)
	case label, jump:
		w.jumps(i, r, s, into)
	case call, methodCall, create, destroy:
		w.call(i, r, s, into)
	case braces, switchCase:
		w.statements(i, s, into)
	case returns, throws, synchronized:
		n := w.node(i, map[role]sir.Kind{returns: sir.Return, throws: sir.Throw, synchronized: sir.Lock}[r], "")
		w.inside(i, s, &w.add(n, into).Nodes)
	default:
		w.inside(i, s, into)
	}
	return next
}

// jumps records labels, and gotos that lead backwards.
func (w *walker) jumps(i int, r role, s *scope, into *[]*outline.Node) {
	if c := w.field(i, "label"); c >= 0 && s.labels != nil {
		name := w.source(c)
		start, end := w.at(i)
		switch {
		case r == label:
			s.labels[name] = true
		case s.labels[name]:
			w.file.Miss(start, end, "this goto leads backwards: the loop that it makes is not listed, and loops have other numbers in machine code")
		}
	}
	w.statements(i, s, into)
}

// preprocessor handles what the preprocessor decides.
func (w *walker) preprocessor(i int, r role, s *scope, into *[]*outline.Node) {
	start, end := w.at(i)
	line, _, _ := bytes.Cut(w.text[start:end], []byte("\n"))
	switch r {
	case packaging:
		w.pack = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(string(line), "package"), ";")) + "."
		return
	case include:
		if name := quoted(string(line)); name != "" && !w.facts.has(name) {
			w.file.Miss(start, end, "what "+name+" contains is not read here")
		}
		return
	case otherBranch:
		if s.function {
			w.file.Miss(start, start+len(line), "one branch of a conditional is read: this one is not")
			return
		}
	case conditional:
		if f := strings.Fields(string(line)); len(f) == 2 && f[0] == "#if" && f[1] == "0" {
			for c := range w.children(i) {
				if w.role(c) == otherBranch {
					w.statements(c, s, into)
				}
			}
			return
		}
	}
	w.statements(i, s, into)
}

// quoted returns the name of an included file between quotes, "" if there is none.
func quoted(line string) string {
	_, rest, _ := strings.Cut(line, `"`)
	name, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return name
}

// pragma makes a region of a directive of OpenMP, with the statement that follows.
func (w *walker) pragma(i, end int, s *scope, into *[]*outline.Node) (next int) {
	next = i + int(w.list[i].size)
	fields := strings.Fields(strings.ReplaceAll(w.source(i), "\\\n", " "))
	if len(fields) > 0 && fields[0] == "#" {
		fields[1] = "#" + fields[1]
		fields = fields[1:]
	}
	if len(fields) < 3 || fields[0] != "#pragma" || fields[1] != "omp" {
		return next
	}
	name, d := outline.OpenMPDirective(strings.Join(fields[2:], " "))
	n := w.node(i, sir.OpenMP, name)
	switch {
	case d == outline.Declaring:
		return next
	case d == outline.NoDirective:
		w.file.Miss(n.Start, n.End, "this directive of OpenMP is not known")
		return next
	case d != outline.Standalone && next < end && s.function:
		_, n.End = w.at(next)
		next = w.visit(next, end, s, &n.Nodes)
		for _, c := range n.Nodes {
			n.End = max(n.End, c.End)
		}
	}
	w.add(n, into)
	return next
}

// hasUnits reports whether any unit is inside a piece.
func (w *walker) hasUnits(i int) bool {
	for c := i + 1; c < i+int(w.list[i].size) && c < len(w.list); c++ {
		switch w.role(c) {
		case function, method, lambda, initializer:
			return true
		}
	}
	return false
}
