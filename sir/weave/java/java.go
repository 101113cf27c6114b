// Package java weaves regions into sources in Java: a region is a try statement, whose finally ends it. It begins and ends in
// native methods of a class beside the source.
package java

import (
	"errors"
	"fmt"

	"mirador/sir"
	"mirador/sir/weave/syntax"
	"mirador/sir/weave/woven"
)

// Source is a source in Java.
type Source struct {
	*syntax.Source
	weaving string
	regions int
	finals  map[string]bool // variables that are declared final and without a value
}

// Read reads a source of a program.
func Read(p *woven.Program, source int) *Source {
	j := &Source{syntax.Read(&p.Sources[source]), p.ID, len(p.Regions[source]), map[string]bool{}}
	declares := false
	for i := range j.Tokens {
		switch {
		case j.Is(i, "final"):
			declares = true
		case declares && j.Is(i, ";"):
			j.finals[j.Word(i-1)] = true
			declares = false
		case j.Is(i, "=", "(", ")", "{", "}"):
			declares = false
		}
	}
	return j
}

// Weave returns the text with regions woven in. A region is a try statement, whose finally ends it.
func (s *Source) Weave(regions []*woven.Region) ([]byte, error) {
	class := classBeside(s.Path)
	var edits []woven.Edit
	var wrong []error
	for _, l := range regions {
		b, e := woven.MarkerName(woven.Begins, s.weaving, l.ID), woven.MarkerName(woven.Ends, s.weaving, l.ID)
		p, err := s.Piece(l, fmt.Sprintf("if (%s.on) %[1]s.%s(); try {", class, b))
		if err == nil && s.regions > mostJavaRegions {
			err = fmt.Errorf("its source has more than %d regions, and a class has no room for them", mostJavaRegions)
		}
		var inserted []woven.Edit
		if err == nil {
			inserted, err = (&piece{p, s.finals, fmt.Sprintf("} finally { if (%s.on) %[1]s.%s(); }", class, e)}).edits()
		}
		if err != nil {
			wrong = append(wrong, &woven.Refusal{ID: l.ID, Why: err.Error()})
		}
		edits = append(edits, inserted...)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return woven.Apply(s.Text, edits), nil
}

// mostJavaRegions limits the regions of a source, each of which takes two methods of a class.
const mostJavaRegions = 5000

// piece is the text of a region of Java.
type piece struct {
	*syntax.Piece
	finals map[string]bool
	end    string
}

// edits returns what is inserted for the region.
func (p *piece) edits() ([]woven.Edit, error) {
	switch p.At.Kind {
	case sir.Function, sir.Method, sir.Lambda:
		return p.body()
	case sir.Catch, sir.Finally:
		return p.inside(p.Opening(p.From, p.To-1))
	case sir.Call:
		if p.Is(p.From, "super", "this") && p.Is(p.From+1, "(") {
			return nil, errors.New("another constructor is called before all statements: measure that one")
		}
		if !p.Is(p.To, ";") || !p.BeginsStatement() {
			return nil, errors.New("it is within an expression: measure a statement around it")
		}
		p.To++
		return p.statement()
	case sir.Branch:
		if form := p.At.Form; form == "case" || form == "default" || form == "type" {
			return nil, errors.New("the statements behind a label of a switch are no block: measure regions inside, or the switch")
		}
		return p.statement()
	case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Scope, sir.Body, sir.Return, sir.Throw, sir.Try, sir.Lock:
		return p.statement()
	}
	return nil, fmt.Errorf("a region of the type %s is an expression, and only statements can be woven", p.At.Kind)
}

// body puts the body of a method or a lambda in a try statement. The call of another constructor remains before it.
func (p *piece) body() ([]woven.Edit, error) {
	brace := p.Opening(p.From, p.To-1)
	if p.At.Kind == sir.Lambda && !p.Is(brace-1, "->") {
		return nil, errors.New("it is an expression, and only statements can be woven: write a block")
	}
	for i := brace + 1; brace >= 0 && i < p.To-1; i++ {
		if p.Outer[i] != int32(brace) || !p.Is(i, "super", "this") || !p.Is(i+1, "(") {
			continue
		}
		for i < p.To-1 && !(p.Is(i, ";") && p.Outer[i] == int32(brace)) {
			i++
		}
		return p.inside(i)
	}
	return p.inside(brace)
}

// inside puts what follows a token, up to the brace at the end, in a try statement.
func (p *piece) inside(begin int) ([]woven.Edit, error) {
	if begin < 0 || begin >= p.To-1 || !p.Is(begin, "{", ";") || !p.Is(p.To-1, "}") {
		return nil, errors.New("it has no block")
	}
	first := woven.Edit{At: int(p.Tokens[begin].End), Depth: p.At.Depth, Text: " " + p.Begin}
	last := woven.Edit{At: int(p.Tokens[p.To-1].Start), Depth: p.At.Depth, End: true, Text: p.end + " "}
	if first.At == last.At { // ends are sorted before beginnings
		first.Text += " " + last.Text
		return []woven.Edit{first}, nil
	}
	return []woven.Edit{first, last}, nil
}

// statement puts a statement, with its labels, in a try statement.
func (p *piece) statement() ([]woven.Edit, error) {
	if p.At.Kind == sir.Switch && p.Is(p.To, ";", ",", ")", ".", ":", "?") {
		return nil, errors.New("its value is used: measure a statement around it")
	}
	if !p.Is(p.To-1, ";", "}") || p.At.Kind == sir.Lock && !p.Is(p.From, "synchronized") {
		return nil, errors.New("it is no statement")
	}
	if p.At.Kind == sir.Loop || p.At.Kind == sir.If {
		if err := p.patterns(); err != nil {
			return nil, err
		}
	}
	for p.Is(p.From-1, ":") && p.From > 2 && p.Tokens[p.From-2].Kind == syntax.Word && p.Is(p.From-3, ";", "{", "}", ")", ":", "else", "do", "->") && !p.Is(p.From-2, "default") {
		p.From -= 2
	}
	if err := errors.Join(p.Cases(), p.assigned()); err != nil {
		return nil, err
	}
	return []woven.Edit{p.Before("{ " + p.Begin + " "), p.Behind(" " + p.end + " }")}, nil
}

// patterns refuses a condition that declares a variable, which the statements that follow may use.
func (p *piece) patterns() error {
	head := p.From
	for head < p.To && !p.Is(head, "(", "{") {
		head++
	}
	if p.Is(p.From, "do") || p.Is(head, "{") {
		return nil
	}
	for i := head; i < p.BehindBrackets(head); i++ {
		if !p.Is(i, "instanceof") {
			continue
		}
		for i++; p.Is(i, "final", ".", "[", "]", "<", ">", "?", ",") || i < p.To && p.Tokens[i].Kind == syntax.Word && p.Is(i+1, ".", "<", "["); i++ {
		}
		if p.Is(i+1, "(") || i+1 < p.To && p.Tokens[i+1].Kind == syntax.Word {
			return errors.New("its condition declares a variable, which statements that follow may use: measure the regions inside")
		}
	}
	return nil
}

// assigned refuses a region that may not end by its end, if a final variable gets its value in it or before, and in another
// place behind it. The compiler knows that control does not come there, but assumes that it does behind a finally.
func (p *piece) assigned() error {
	jumps := func(i int) bool { return p.Is(i, "return", "throw", "break", "continue", "yield", "while", "for") }
	from := p.From
	for from < p.To && !jumps(from) {
		from++
	}
	if len(p.finals) == 0 || from == p.To {
		return nil
	}
	begin, end := p.Unit()
	before := map[string]bool{}
	for i := begin; i < end; i++ {
		name := p.Word(i)
		switch {
		case !p.finals[name] || !p.assigns(i):
		case i < p.To:
			before[name] = true
		case before[name]:
			return fmt.Errorf("it may not end by its end, and the final variable %s is assigned behind it as well as before: measure another region", name)
		}
	}
	return nil
}

// assigns reports whether a name is followed by the sign of an assignment.
func (p *piece) assigns(i int) bool {
	return p.Tokens[i].Kind == syntax.Word && p.Is(i+1, "=") && !p.Is(i+2, "=")
}
