package c

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/weave/syntax"
	"mirador/sir/weave/woven"
)

// piece is the text of a region of C or C++.
type piece struct {
	*syntax.Piece
	cpp    bool
	macros map[string]bool // with parameters
}

// statement puts a statement in braces, together with what begins the region.
func (p *piece) statement() ([]woven.Edit, error) {
	if !p.Is(p.To-1, ";", "}") && p.Tokens[p.To-1].Kind != syntax.Directive {
		return nil, errors.New("it is no statement")
	}
	if p.At.Kind == sir.If && p.beforeElse() && !p.alone() {
		return nil, errors.New("an else follows that was not understood")
	}
	if err := p.enclosed(); err != nil {
		return nil, err
	}
	return []woven.Edit{p.Before("{ " + p.Begin + " "), p.Behind(" }")}, nil
}

// beforeElse reports whether an else follows.
func (p *piece) beforeElse() bool {
	next := p.To
	for next < len(p.Tokens) && p.Tokens[next].Kind == syntax.Directive {
		next++
	}
	return p.Is(next, "else")
}

// alone reports whether the piece is a whole branch, which an else of the outer statement may follow.
func (p *piece) alone() bool {
	_, end, _ := p.At.Around.Span(p.Lines, len(p.Text))
	return p.At.Around.Kind == sir.Branch && end == int(p.Tokens[p.To-1].End)
}

// function begins the region behind the brace that opens a function's body. The function's end ends it.
func (p *piece) function() ([]woven.Edit, error) {
	brace := p.Opening(p.From, p.To-1)
	if brace < 0 || !p.Is(brace, "{") {
		return nil, errors.New("the beginning of its body was not found")
	}
	for i := p.From; i < brace; i++ {
		if p.Is(i, "try") {
			return nil, errors.New("its body is a try block: measure its parts")
		}
	}
	if err := errors.Join(p.whole(p.From, brace), p.whole(brace, p.To)); err != nil {
		return nil, err
	}
	return []woven.Edit{{At: int(p.Tokens[brace].End), Depth: p.At.Depth, Text: " " + p.Begin}}, nil
}

// executed refuses functions whose code the compiler may execute, or that have no frame.
func (p *piece) executed() error {
	from, to := p.Unit()
	if from >= to {
		return errors.New("the function around it was not found")
	}
	for i := from; i < p.Opening(from, to-1); i++ {
		if p.Is(i, "constexpr", "consteval", "naked", "__naked__") {
			return fmt.Errorf("its function is %s, and could not be compiled", p.Word(i))
		}
	}
	return nil
}

// inBraces begins the region behind the brace that opens a handler of exceptions.
func (p *piece) inBraces() ([]woven.Edit, error) {
	brace := p.Opening(p.From, p.To-1)
	if brace < 0 || !p.Is(brace, "{") {
		return nil, errors.New("the beginning of its block was not found")
	}
	if err := p.enclosed(); err != nil {
		return nil, err
	}
	return []woven.Edit{{At: int(p.Tokens[brace].End), Depth: p.At.Depth, Text: " " + p.Begin}}, nil
}

// call puts a call in braces if it is a statement. In C an expression can contain a block.
func (p *piece) call() ([]woven.Edit, error) {
	callee := p.Word(p.From)
	if strings.Contains(callee, "setjmp") || callee == "vfork" {
		return nil, fmt.Errorf("%s may return twice", callee)
	}
	if strings.HasPrefix(callee, "va_") || strings.HasPrefix(callee, "__builtin_") || callee == "offsetof" || callee == "_Static_assert" || callee == "static_assert" {
		return nil, fmt.Errorf("%s is no function", callee)
	}
	if p.macros[callee] {
		return nil, fmt.Errorf("%s is a macro", callee)
	}
	if p.Is(p.To, ";") && p.BeginsStatement() {
		p.To++
		return p.statement()
	}
	if p.cpp {
		return nil, errors.New("it is within an expression, and temporary objects of C++ live as long as their expression: measure a statement around it")
	}
	if p.stored() || p.label() {
		return nil, fmt.Errorf("%s is a macro: it is more than a value, or a constant", callee)
	}
	if err := p.enclosed(); err != nil {
		return nil, err
	}
	return []woven.Edit{p.Before("__extension__ ({ " + p.Begin + " "), p.Behind("; })")}, nil
}

// stored reports whether the piece names an object whose address is taken or that is changed.
func (p *piece) stored() bool {
	next, before := p.To, p.From-1
	joined := func(i int) bool { return i+1 < len(p.Tokens) && p.Tokens[i].End == p.Tokens[i+1].Start }
	switch {
	case p.Is(next, ".") || p.Is(next, "=") && !(joined(next) && p.Is(next+1, "=")):
		return true
	case p.Is(next, "+", "-") && joined(next) && (p.Word(next) == p.Word(next+1) || p.Is(next+1, "=")):
		return true
	case p.Is(before, "&"):
		return !(before > 0 && (p.Tokens[before-1].Kind == syntax.Word && !p.Is(before-1, "return") || p.Tokens[before-1].Kind == syntax.Number || p.Is(before-1, "]")))
	}
	return p.Is(before, "+", "-") && p.Is(before-1, p.Word(before)) && joined(before-1)
}

// label reports whether the piece is in a label of a switch.
func (p *piece) label() bool {
	for i := p.From - 1; i >= 0 && !p.Is(i, ";", "{", "}", ":"); i-- {
		if p.Is(i, "case") {
			return true
		}
	}
	return false
}

// allowed checks what directives of OpenMP require of the statements that follow them.
func (p *piece) allowed() error {
	if form := p.At.Form; p.At.Kind == sir.OpenMP && strings.HasPrefix(form, "section") && form != "sections" {
		return errors.New("the sections of a directive are no statements of their own: measure a region inside")
	}
	if p.At.Kind == sir.Body || p.At.Kind == sir.OpenMP || p.At.Around == nil {
		return p.nested()
	}
	around := p.At.Around
	if around.Kind == sir.Loop && (p.At.Code != nil && p.At.Kind == sir.Call) {
		around = around.Around // a part of the head of the loop
	}
	if around == nil || around.Kind != sir.OpenMP {
		return p.nested()
	}
	words := strings.Fields(around.Form)
	for _, w := range []string{"for", "simd", "taskloop", "distribute", "loop", "atomic"} {
		if slices.Contains(words, w) {
			return fmt.Errorf("the directive %s needs its statement unchanged: measure the directive, or a region inside", around.Form)
		}
	}
	return p.nested()
}

// nested refuses what is between loops that a directive makes one of.
func (p *piece) nested() error {
	if p.At.Kind != sir.Loop && p.At.Kind != sir.Body {
		return nil
	}
	for around := p.At.Around; around != nil; around = around.Around {
		switch around.Kind {
		case sir.Loop, sir.Body:
		case sir.OpenMP:
			at := p.Find(p.Lines.Offset(around.Line, around.Code.Column))
			if text := p.Word(at); strings.Contains(text, "collapse") || strings.Contains(text, "ordered") || strings.Contains(text, "tile") {
				return errors.New("a directive of OpenMP makes one loop of this one and others: measure the directive, or a region inside all loops")
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// enclosed checks that a block can be put around the tokens: the preprocessor keeps or drops them together, and
// no jump leads into them.
func (p *piece) enclosed() error {
	if err := p.whole(p.From, p.To); err != nil {
		return err
	}
	for i := p.From; i < p.To; i++ {
		if p.Is(i, "goto") && p.Is(i+1, "*") {
			return errors.New("it has a goto to a computed label, after which its end is not executed")
		}
	}
	if err := p.Cases(); err != nil {
		return err
	}
	return p.entered()
}

// whole checks that conditionals of the preprocessor begin and end among the tokens.
func (p *piece) whole(from, to int) error {
	depth := 0
	for i := from; i < to; i++ {
		if p.Tokens[i].Kind != syntax.Directive {
			continue
		}
		name := strings.TrimSpace(strings.TrimPrefix(p.Word(i), "#"))
		switch {
		case strings.HasPrefix(name, "if"):
			depth++
		case strings.HasPrefix(name, "endif"):
			depth--
		case strings.HasPrefix(name, "el") && depth == 0:
			depth = -1
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return errors.New("a conditional of the preprocessor begins in it and ends outside, or the other way round")
	}
	return nil
}

// entered refuses tokens with a label to which a goto outside of them leads.
func (p *piece) entered() error {
	labels := map[string]bool{}
	for i := p.From; i < p.To; i++ {
		if p.Tokens[i].Kind == syntax.Word && p.Is(i+1, ":") && p.AfterStatement(i) {
			labels[p.Word(i)] = true
		}
	}
	if len(labels) == 0 {
		return nil
	}
	from, to := p.Unit()
	for i := from; i < to; i++ {
		if i >= p.From && i < p.To {
			continue
		}
		if p.Is(i-1, "goto") && (p.Is(i, "*") || labels[p.Word(i)]) || p.Is(i-1, "&&") && labels[p.Word(i)] && p.Is(i-2, "=", "{", ",", "(") {
			return fmt.Errorf("a goto leads into it, at line %d", p.Lines.Of(int(p.Tokens[i].Start)))
		}
	}
	return nil
}
