package fortran

import (
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// within handles a statement inside a unit that does not end anything.
func (p *parser) within(s *statement) {
	name, from := constructName(s.text)
	rest := s.part(from, len(s.text))
	if from == 0 {
		rest = *s
	}
	switch {
	case p.conditional(&rest, s, name), p.alternative(&rest, s):
	case isAssignment(rest.text):
		p.references(&rest, p.into(s.start), false)
	case p.loop(&rest, s, name), p.block(&rest, s, name), p.declaration(&rest, s):
	default:
		p.action(&rest, p.into(s.start))
	}
}

func isAssignment(text string) bool { _, ok := assignment(text); return ok }

// constructName returns the name before a construct, and where the construct begins.
func constructName(text string) (string, int) {
	name, rest := identifier(text)
	if name == "" || len(rest) < 2 || rest[0] != ':' || rest[1] == ':' {
		return "", 0
	}
	return name, len(name) + 1
}

// conditional handles IF, and WHERE and FORALL, which have a short form too.
func (p *parser) conditional(s, whole *statement, name string) bool {
	for _, c := range []struct {
		word string
		kind sir.Kind
		form string
	}{{"if", sir.If, ""}, {"where", sir.Block, "where"}, {"forall", sir.Block, "forall"}} {
		if !strings.HasPrefix(s.text, c.word+"(") {
			continue
		}
		end := closing(s.text, len(c.word))
		if end < 0 {
			continue
		}
		after := s.text[end+1:]
		if strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "==") || strings.HasPrefix(after, "%") || after == "" && c.word == "if" {
			return false // an array with the name of a statement
		}
		n := p.add(&outline.Node{Kind: c.kind, Form: c.form, Start: whole.start, End: whole.end})
		test := s.part(len(c.word), end+1)
		p.references(&test, &n.Nodes, false)
		switch {
		case after == "then" && c.word == "if":
			p.push(&frame{kind: constructFrame, word: "if", name: name, node: n, next: &outline.Node{Kind: sir.Branch, Form: "then"}})
		case after == "":
			p.push(&frame{kind: constructFrame, word: c.word, name: name, node: n})
		case c.word == "if" && digit(after[0]): // IF (…) 10, 20, 30
			p.jump(whole)
		default:
			rest := s.part(end+1, len(s.text))
			if into := &n.Nodes; c.word == "if" {
				branch := &outline.Node{Kind: sir.Branch, Form: "then", Start: rest.start, End: rest.end}
				*into = append(*into, branch)
				p.action(&rest, &branch.Nodes)
			} else {
				p.action(&rest, into)
			}
		}
		return true
	}
	return false
}

// alternative handles what begins another branch of a construct.
func (p *parser) alternative(s, whole *statement) bool {
	f := p.top()
	form := ""
	switch {
	case f.word == "if" && (strings.HasPrefix(s.text, "elseif(") || strings.HasPrefix(s.text, "else(")):
		form = "else if"
	case f.word == "if" && strings.HasPrefix(s.text, "else"):
		form = "else"
	case f.word == "select" && strings.HasPrefix(s.text, "casedefault"), f.word == "select" && strings.HasPrefix(s.text, "classdefault"),
		f.word == "select" && strings.HasPrefix(s.text, "rankdefault"):
		form = "default"
	case f.word == "select" && (strings.HasPrefix(s.text, "case(") || strings.HasPrefix(s.text, "typeis(") || strings.HasPrefix(s.text, "classis(") || strings.HasPrefix(s.text, "rank(")):
		form = "case"
	case f.word == "where" && strings.HasPrefix(s.text, "elsewhere"):
		return true
	default:
		return false
	}
	if isAssignment(s.text) {
		return false
	}
	p.endPart(f)
	f.part = &outline.Node{Kind: sir.Branch, Form: form, Start: whole.start}
	f.node.Nodes = append(f.node.Nodes, f.part)
	f.nodes = &f.part.Nodes
	p.references(s, f.nodes, false)
	return true
}

// loop handles DO in all its forms.
func (p *parser) loop(s, whole *statement, name string) bool {
	rest, ok := strings.CutPrefix(s.text, "do")
	if !ok {
		return false
	}
	label := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	rest = strings.TrimPrefix(rest[len(label):], ",")
	form := "for"
	switch {
	case rest == "":
		form = "forever"
	case strings.HasPrefix(rest, "while("):
		form = "while"
	case strings.HasPrefix(rest, "concurrent("):
		form = "concurrent"
	default:
		if variable, after := identifier(rest); variable == "" || !strings.HasPrefix(after, "=") {
			return false
		}
	}
	n := p.add(&outline.Node{Kind: sir.Loop, Form: form, Start: whole.start, End: whole.end})
	p.references(s, &n.Nodes, form != "while")
	p.push(&frame{kind: constructFrame, word: "do", name: name, label: label, node: n, next: &outline.Node{Kind: sir.Body}})
	return true
}

// block handles the other constructs.
func (p *parser) block(s, whole *statement, name string) bool {
	for _, c := range []struct {
		begin, word string
		kind        sir.Kind
		form        string
	}{
		{"selectcase(", "select", sir.Switch, "case"}, {"selecttype(", "select", sir.Switch, "type"}, {"selectrank(", "select", sir.Switch, "rank"},
		{"associate(", "associate", sir.Block, "associate"}, {"block", "block", sir.Block, "block"}, {"critical", "critical", sir.Lock, "critical"},
		{"changeteam(", "team", sir.Block, "team"},
	} {
		if s.text != c.begin && !(strings.HasSuffix(c.begin, "(") || c.begin == "critical") || !strings.HasPrefix(s.text, c.begin) {
			continue
		}
		n := p.add(&outline.Node{Kind: c.kind, Form: c.form, Start: whole.start, End: whole.end})
		p.references(s, &n.Nodes, false)
		p.push(&frame{kind: constructFrame, word: c.word, name: name, node: n})
		return true
	}
	return false
}

// declaration handles statements that declare something and contain others, or that matter for names.
func (p *parser) declaration(s, whole *statement) bool {
	switch t := s.text; {
	case t == "interface" || strings.HasPrefix(t, "interface") || t == "abstractinterface":
		p.push(&frame{kind: interfaceFrame, word: "interface"})
	case strings.HasPrefix(t, "type") && !strings.HasPrefix(t, "type(") && !strings.HasPrefix(t, "typeis("):
		p.push(&frame{kind: typeFrame, word: "type"})
	case strings.HasPrefix(t, "enum,") || t == "enum":
		p.push(&frame{kind: typeFrame, word: "enum"})
	case strings.HasPrefix(t, "use"):
		rest := t[len("use"):]
		if _, after, ok := strings.Cut(rest, "::"); ok {
			rest = after
		}
		if name, after := identifier(rest); name != "" && (after == "" || after[0] == ',') {
			u := p.unit()
			u.uses = append(u.uses, name)
		}
	case t == "contains":
	case strings.HasPrefix(t, "include'") || strings.HasPrefix(t, "include\""):
		p.include(string(p.file.Text[whole.start:whole.end]), whole.start, whole.end)
	case isDeclaration(t):
	default:
		return false
	}
	return true
}

// isDeclaration reports whether a statement is not executed.
func isDeclaration(t string) bool {
	if strings.Contains(t, "::") {
		return true
	}
	for _, word := range []string{"implicit", "integer", "real", "doubleprecision", "complex", "logical", "character", "dimension", "parameter", "data", "common",
		"equivalence", "external", "intrinsic", "save", "format", "namelist", "type(", "class(", "entry", "procedure", "import", "private", "public", "block",
		"allocatable", "asynchronous", "automatic", "bind(", "byte", "contiguous", "intent(", "optional", "pointer", "protected", "static", "target", "value", "volatile"} {
		if strings.HasPrefix(t, word) {
			return true
		}
	}
	return false
}

// endLabelled closes the loops that end with a labelled statement.
func (p *parser) endLabelled(s *statement) {
	for p.top().kind == constructFrame && p.top().label == s.label && s.label != "" && p.top().word == "do" {
		p.last = s.end
		p.pop(s.end)
		p.loopEnded(s.end)
	}
}

// endLabelledBy closes the loops inside that end with this END DO.
func (p *parser) endLabelledBy(s *statement) {
	for len(p.frames) > 2 && p.top().label == s.label && p.frames[len(p.frames)-2].label == s.label {
		p.pop(s.end)
		p.loopEnded(s.end)
	}
}
