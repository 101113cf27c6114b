package fortran

import (
	"fmt"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

type frameKind int

const (
	fileFrame frameKind = iota
	unitFrame
	interfaceFrame // what is inside is not executed
	typeFrame
	constructFrame // if, do, select, where, forall, associate, block, critical
	directiveFrame
)

// frame is a unit, construct or directive that is open.
type frame struct {
	kind  frameKind
	word  string // behind end
	name  string // of a construct
	label string // that ends a loop
	node  *outline.Node
	nodes *[]*outline.Node // where regions inside belong
	part  *outline.Node    // the body or branch, begun
	next  *outline.Node    // the body or branch that begins with the next statement
	unit  *unit
	loop  bool // of a directive: it ends with the loop that follows
	done  bool // of a directive: that loop has ended
}

type parser struct {
	file   *outline.File
	facts  *Facts
	frames []*frame
	calls  []pending
	last   int // where the statement before ends
	ifs    conditionals
	deep   int // number of constructs that are open and too deep
	count  int // of regions
}

func (p *parser) top() *frame { return p.frames[len(p.frames)-1] }

// unit returns the innermost program unit, nil outside of all.
func (p *parser) unit() *unit {
	for i := len(p.frames) - 1; i >= 0; i-- {
		if p.frames[i].unit != nil {
			return p.frames[i].unit
		}
	}
	return nil
}

// into returns where a region belongs that begins with a statement.
func (p *parser) into(start int) *[]*outline.Node {
	f := p.top()
	if f.next != nil {
		f.part, f.next = f.next, nil
		f.part.Start = start
		f.node.Nodes = append(f.node.Nodes, f.part)
		f.nodes = &f.part.Nodes
	}
	return f.nodes
}

func (p *parser) add(n *outline.Node) *outline.Node {
	p.count++
	at := p.into(n.Start)
	*at = append(*at, n)
	return n
}

// mostFrames is the number of units and constructs that may be open: each has a region and a part.
const mostFrames = outline.MostDepth / 2

// push opens a construct, except one that is too deep.
func (p *parser) push(f *frame) {
	if len(p.frames) > mostFrames {
		p.deep++
		return
	}
	if f.nodes == nil && f.node != nil {
		f.nodes = &f.node.Nodes
	}
	p.frames = append(p.frames, f)
}

// pop closes the innermost frame. Its last part ends with the statement before.
func (p *parser) pop(end int) {
	f := p.top()
	p.endPart(f)
	p.frames = p.frames[:len(p.frames)-1]
	if f.node == nil {
		return
	}
	if n := len(f.node.Nodes); n > 0 {
		end = max(end, f.node.Nodes[n-1].End)
	}
	f.node.End = end
}

func (p *parser) endPart(f *frame) {
	if f.part != nil {
		f.part.End = p.last
	}
	f.part, f.next = nil, nil
	if f.node != nil {
		f.nodes = &f.node.Nodes
	}
}

// end closes what the file leaves open.
func (p *parser) end() {
	for len(p.frames) > 1 {
		f := p.top()
		start := p.last
		if f.node != nil {
			start = f.node.Start
		}
		what := f.word
		if f.kind == directiveFrame && f.loop {
			what = "" // no loop follows, or it ended
		}
		if what != "" && !(f.unit != nil && f.unit.name == "") {
			p.file.Miss(start, min(start+1, len(p.file.Text)), fmt.Sprintf("the end of this %s is missing", what))
		}
		p.pop(max(p.last, start+1))
	}
}

func (p *parser) damaged(start, end int, reason string) { p.file.Miss(start, end, reason) }

// statement handles a statement of the program.
func (p *parser) statement(s *statement) {
	if p.skipped() || p.count > outline.MostRegions {
		return
	}
	defer func() { p.last = s.end }()
	switch f := p.top(); f.kind {
	case interfaceFrame, typeFrame:
		if strings.HasPrefix(s.text, "end"+f.word) {
			p.pop(s.end)
		}
		return
	}
	if h := headerOf(s); h.kind != "" && p.beginUnit(h, s) {
		return
	}
	p.endLoopDirective(s)
	if p.ends(s) {
		return
	}
	if p.unit() == nil {
		p.beginUnit(header{kind: sir.MainProgram}, s)
	}
	if s.label != "" {
		p.unit().labels[s.label] = true
	}
	directive := p.top()
	p.within(s)
	if directive == p.top() && strings.HasPrefix(directive.word, "atomic") {
		directive.done, directive.node.End = true, s.end
	}
	if s.label != "" {
		p.endLabelled(s)
	}
}

// beginUnit opens a program unit. It reports false if none can begin here.
func (p *parser) beginUnit(h header, s *statement) bool {
	f := p.top()
	if f.kind != fileFrame && f.kind != unitFrame {
		p.file.Miss(s.start, s.end, "a program unit begins inside a construct")
		for p.top().kind > unitFrame {
			p.pop(p.last)
		}
	}
	if len(p.frames) > mostFrames {
		return false
	}
	outer := p.unit()
	u := &unit{kind: h.kind, name: h.name, outer: outer, internal: map[string]string{}, labels: map[string]bool{}}
	n := &outline.Node{Kind: h.kind, Name: h.name, Start: s.start}
	if h.kind == "procedure" {
		n.Kind = sir.Subroutine
	}
	if h.bound == "*" {
		h.bound = boundName(p.file.Text[s.start:s.end])
	}
	n.Symbol = u.symbol(h.bound)
	if n.Name == "" {
		n.Name = "main"
	}
	if outer != nil && outer.kind != sir.Module {
		outer.internal[h.name] = h.name
		n.Static = true
	}
	p.add(n)
	p.push(&frame{kind: unitFrame, word: string(n.Kind), node: n, unit: u})
	return true
}

// boundName returns the last string of a statement: that of bind(c, name="…").
func boundName(text []byte) string {
	parts := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\'' || r == '"' })
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// ends handles a statement that ends a unit or a construct.
func (p *parser) ends(s *statement) bool {
	if endsUnit(s.text) {
		p.endUnit(s)
		return true
	}
	word := endOf(s)
	if word == "" {
		return false
	}
	if p.deep > 0 {
		if p.deep--; p.deep == 0 {
			p.file.Miss(s.start, s.end, fmt.Sprintf("constructs inside %d others are not understood", mostFrames))
		}
		return true
	}
	if s.label != "" {
		p.endLabelledBy(s)
	}
	for i := len(p.frames) - 1; i > 0 && p.frames[i].kind != unitFrame; i-- {
		if p.frames[i].word != word || p.frames[i].kind == directiveFrame {
			continue
		}
		for len(p.frames)-1 > i {
			if f := p.top(); f.kind != directiveFrame {
				p.file.Miss(f.node.Start, f.node.Start+1, fmt.Sprintf("the end of this %s is missing", f.word))
			}
			p.pop(p.last)
		}
		loop := p.top().node != nil && p.top().node.Kind == sir.Loop
		p.pop(s.end)
		if loop {
			p.loopEnded(s.end)
		}
		return true
	}
	p.file.Miss(s.start, s.end, "this END has no beginning")
	return true
}

func (p *parser) endUnit(s *statement) {
	if p.deep > 0 {
		p.file.Miss(s.start, s.end, fmt.Sprintf("constructs inside %d others are not understood", mostFrames))
		p.deep = 0
	}
	for len(p.frames) > 1 && p.top().kind != unitFrame {
		f := p.top()
		if f.node != nil && f.kind == constructFrame {
			p.file.Miss(f.node.Start, f.node.Start+1, fmt.Sprintf("the end of this %s is missing", f.word))
		}
		p.pop(p.last)
	}
	if len(p.frames) == 1 {
		if s.text == "end" { // a main program without a statement
			p.add(&outline.Node{Kind: sir.MainProgram, Name: "main", Symbol: "MAIN__", Start: s.start, End: s.end})
			return
		}
		p.file.Miss(s.start, s.end, "this END has no beginning")
		return
	}
	p.pop(s.end)
}

// endOf returns the word behind the end of a construct, "" if the statement is another one.
func endOf(s *statement) string {
	rest, ok := strings.CutPrefix(s.text, "end")
	if !ok {
		return ""
	}
	if _, isAssignment := assignment(s.text); isAssignment {
		return ""
	}
	for _, word := range []string{"interface", "if", "do", "select", "where", "forall", "associate", "block", "critical", "enum", "team", "type"} {
		if after, ok := strings.CutPrefix(rest, word); ok && (after == "" || isName(after) || word == "interface") {
			return word
		}
	}
	return ""
}
