package fortran

import (
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// action handles a statement that is executed and contains no others.
func (p *parser) action(s *statement, into *[]*outline.Node) {
	if isAssignment(s.text) {
		p.references(s, into, false)
		return
	}
	kind, form := actionOf(s.text)
	if form == "goto" {
		p.jump(s)
	}
	if kind == "" {
		p.references(s, into, false)
		return
	}
	n := &outline.Node{Kind: kind, Form: form, Start: s.start, End: s.end}
	*into = append(*into, n)
	if kind != sir.Call {
		if kind == sir.IO {
			p.implied(s, &n.Nodes)
		} else {
			p.references(s, &n.Nodes, false)
		}
		return
	}
	name, rest := identifier(s.text[len("call"):])
	n.Form, n.Callee = outline.Does(name), name
	if strings.HasPrefix(rest, "%") || strings.HasPrefix(rest, "(") && strings.Contains(rest, ")%") {
		end := strings.IndexByte(rest+"(", '(')
		n.Callee, n.CalleeSymbol = name+rest[:end], "*"
	} else {
		p.calls = append(p.calls, pending{n, p.unit(), name})
	}
	arguments := s.part(len(s.text)-len(rest), len(s.text))
	p.references(&arguments, &n.Nodes, false)
}

// actionOf returns the kind of a statement, "" for one that is no region.
func actionOf(t string) (kind sir.Kind, form string) {
	name, rest := identifier(t)
	followed := func(signs string) bool { return rest != "" && strings.IndexByte(signs, rest[0]) >= 0 }
	switch {
	case strings.HasPrefix(t, "call"):
		return sir.Call, ""
	case strings.HasPrefix(name, "return"):
		return sir.Return, ""
	case strings.HasPrefix(name, "stop"):
		return sir.Stop, "stop"
	case strings.HasPrefix(name, "errorstop"):
		return sir.Stop, "error stop"
	case strings.HasPrefix(name, "goto"):
		return "", "goto"
	case strings.HasPrefix(name, "print"), name == "read" && followed("(*'\""), strings.HasPrefix(name, "read") && followed(",") || name == "read":
		return sir.IO, name[:min(len(name), 5)]
	case strings.HasPrefix(name, "backspace"), strings.HasPrefix(name, "endfile"), strings.HasPrefix(name, "rewind"):
		return sir.IO, strings.TrimRight(name, "0123456789")
	case !followed("("):
		return "", ""
	}
	switch name {
	case "write", "open", "close", "inquire", "flush", "wait":
		return sir.IO, name
	case "allocate", "deallocate":
		return sir.Allocation, name
	case "lock", "unlock":
		return sir.Lock, name
	}
	return "", ""
}

// jump records a jump backwards, which makes a loop.
func (p *parser) jump(s *statement) {
	rest := strings.TrimPrefix(s.text, "goto")
	if i := strings.LastIndexByte(s.text, ')'); strings.HasPrefix(s.text, "if(") && i >= 0 {
		rest = s.text[i+1:]
	}
	for label := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r < '0' || r > '9' }) {
		if u := p.unit(); u != nil && u.labels[label] {
			p.file.Miss(s.start, s.end, "this GO TO leads backwards: the loop that it makes is not listed, and loops have other numbers in machine code")
			return
		}
	}
}

// mostNested is the number of calls inside each other in an expression.
const mostNested = 50

// references adds the calls of functions in a statement. before: a loop executes them once.
func (p *parser) references(s *statement, into *[]*outline.Node, before bool) {
	p.referencesIn(s, into, before, 0)
}

func (p *parser) referencesIn(s *statement, into *[]*outline.Node, before bool, depth int) {
	for i := 0; i < len(s.text); {
		c := s.text[i]
		if !letter(c) {
			if i++; c == '\'' || c == '"' {
				i++
			}
			continue
		}
		name, rest := identifier(s.text[i:])
		open := i + len(name)
		known := strings.HasPrefix(rest, "(") && p.facts.functions[name] && (i == 0 || s.text[i-1] != '%')
		if !known {
			for i = open; i < len(s.text) && digit(s.text[i]); i++ {
			}
			continue
		}
		end := closing(s.text, open)
		if end < 0 {
			return
		}
		n := &outline.Node{Kind: sir.Call, Form: outline.Does(name), Callee: name, Start: int(s.at[i]), End: int(s.at[end]) + 1, Before: before}
		*into = append(*into, n)
		p.calls = append(p.calls, pending{n, p.unit(), name})
		if inside := s.part(open, end+1); depth < mostNested {
			p.referencesIn(&inside, &n.Nodes, before, depth+1)
		}
		i = end + 1
	}
}

// implied adds the loops in the list of an input or output statement: (…, i = 1, n).
func (p *parser) implied(s *statement, into *[]*outline.Node) {
	from := 0
	if name, rest := identifier(s.text); strings.HasPrefix(rest, "(") && name != "print" {
		if from = closing(s.text, len(name)) + 1; from == 0 {
			return
		}
		control := s.part(0, from)
		p.references(&control, into, false)
	}
	list := s.part(from, len(s.text))
	loops := impliedLoops(&list)
	from = 0
	for _, n := range loops { // functions are called between them
		to, _ := slices.BinarySearch(list.at, int32(n.Start))
		before := list.part(from, to)
		p.references(&before, into, false)
		from, _ = slices.BinarySearch(list.at, int32(n.End))
	}
	rest := list.part(from, len(list.text))
	p.references(&rest, into, false)
	*into = append(*into, loops...)
}

// group is a pair of parentheses in a list.
type group struct {
	open, comma int
	loop        bool // a variable behind the comma gets a value
	inside      []*outline.Node
}

// node returns the loop of a group that ends at a place. The list before the comma is its body.
func (g *group) node(s *statement, end int) *outline.Node {
	body := &outline.Node{Kind: sir.Body, Start: int(s.at[g.open+1]), End: int(s.at[g.comma])}
	n := &outline.Node{Kind: sir.Loop, Form: "implied", Start: int(s.at[g.open]), End: int(s.at[end]) + 1, Nodes: []*outline.Node{body}}
	for _, c := range g.inside {
		if c.End <= body.End {
			body.Nodes = append(body.Nodes, c)
		} else {
			n.Nodes = append(n.Nodes, c)
		}
	}
	return n
}

// longestName is the number of characters of a name.
const longestName = 63

func impliedLoops(s *statement) []*outline.Node {
	open := []*group{{comma: -1}}
	for i := 0; i < len(s.text); i++ {
		g := open[len(open)-1]
		switch s.text[i] {
		case '\'', '"':
			i++
		case '(':
			open = append(open, &group{open: i, comma: -1})
		case ',':
			if !g.loop {
				g.comma = i
			}
		case '=':
			named := g.comma >= 0 && i-g.comma <= longestName && isName(s.text[g.comma+1:i])
			g.loop = g.loop || named && i+1 < len(s.text) && s.text[i+1] != '='
		case ')':
			if len(open) == 1 {
				continue
			}
			open = open[:len(open)-1]
			if around := open[len(open)-1]; g.loop && g.comma > g.open+1 {
				around.inside = append(around.inside, g.node(s, i))
			} else {
				around.inside = append(around.inside, g.inside...)
			}
		}
	}
	return open[0].inside
}
