package weave

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mirador/sir"
)

// piece is the text of a region of C or C++: its tokens.
type piece struct {
	*cSource
	at       *located
	from, to int
	begin    string
}

// statement puts a statement in braces, together with what begins the region.
func (p *piece) statement() ([]edit, error) {
	if !p.is(p.to-1, ";", "}") && p.tokens[p.to-1].kind != directive {
		return nil, errors.New("it is no statement")
	}
	if p.at.Kind == sir.If && p.beforeElse() && !p.alone() {
		return nil, errors.New("an else follows that was not understood")
	}
	if err := p.enclosed(); err != nil {
		return nil, err
	}
	return []edit{p.before("{ " + p.begin + " "), p.behind(" }")}, nil
}

// beforeElse reports whether an else follows.
func (p *piece) beforeElse() bool {
	next := p.to
	for next < len(p.tokens) && p.tokens[next].kind == directive {
		next++
	}
	return p.is(next, "else")
}

// alone reports whether the piece is a whole branch, which an else of the outer statement may follow.
func (p *piece) alone() bool {
	_, end, _ := p.at.around.extent(p.lines, len(p.Text))
	return p.at.around.Kind == sir.Branch && end == int(p.tokens[p.to-1].end)
}

// before inserts a text before the region. A directive stays at the beginning of its line, which keeps its number.
func (p *piece) before(text string) edit {
	e := edit{at: int(p.tokens[p.from].start), depth: p.at.depth, text: text}
	if p.tokens[p.from].kind == directive {
		line := p.lines.of(e.at)
		e.at = int(p.lines[line-1])
		e.text = fmt.Sprintf("%s\n#line %d\n", strings.TrimSpace(text), line)
	}
	return e
}

// behind inserts a text behind the region. Behind a directive that is on the next line.
func (p *piece) behind(text string) edit {
	last := p.tokens[p.to-1]
	e := edit{at: int(last.end), depth: p.at.depth, end: true, text: text}
	if last.kind != directive {
		return e
	}
	if e.at < len(p.Text) {
		e.at++
		e.text = strings.TrimSpace(text) + " "
	} else {
		e.text = "\n" + strings.TrimSpace(text)
	}
	return e
}

// function begins the region behind the brace that opens a function's body. The function's end ends it.
func (p *piece) function() ([]edit, error) {
	brace := p.opening(p.from, p.to-1)
	if brace < 0 || !p.is(brace, "{") {
		return nil, errors.New("the beginning of its body was not found")
	}
	for i := p.from; i < brace; i++ {
		if p.is(i, "try") {
			return nil, errors.New("its body is a try block: measure its parts")
		}
	}
	if err := errors.Join(p.whole(p.from, brace), p.whole(brace, p.to)); err != nil {
		return nil, err
	}
	return []edit{{at: int(p.tokens[brace].end), depth: p.at.depth, text: " " + p.begin}}, nil
}

// unit returns the tokens of the function that contains the piece.
func (p *piece) unit() (from, to int) {
	l := p.at
	for l.around != nil && l.Extent == nil {
		l = l.around
	}
	start, end, _ := l.extent(p.lines, len(p.Text))
	return p.find(start), p.find(end)
}

// executed refuses functions whose code the compiler may execute, or that have no frame.
func (p *piece) executed() error {
	from, to := p.unit()
	if from >= to {
		return errors.New("the function around it was not found")
	}
	for i := from; i < p.opening(from, to-1); i++ {
		if p.is(i, "constexpr", "consteval", "naked", "__naked__") {
			return fmt.Errorf("its function is %s, and could not be compiled", p.word(i))
		}
	}
	return nil
}

// inBraces begins the region behind the brace that opens a handler of exceptions.
func (p *piece) inBraces() ([]edit, error) {
	brace := p.opening(p.from, p.to-1)
	if brace < 0 || !p.is(brace, "{") {
		return nil, errors.New("the beginning of its block was not found")
	}
	if err := p.enclosed(); err != nil {
		return nil, err
	}
	return []edit{{at: int(p.tokens[brace].end), depth: p.at.depth, text: " " + p.begin}}, nil
}

// call puts a call in braces if it is a statement. In C an expression can contain a block.
func (p *piece) call() ([]edit, error) {
	callee := p.word(p.from)
	if strings.Contains(callee, "setjmp") || callee == "vfork" {
		return nil, fmt.Errorf("%s may return twice", callee)
	}
	if strings.HasPrefix(callee, "va_") || strings.HasPrefix(callee, "__builtin_") || callee == "offsetof" || callee == "_Static_assert" || callee == "static_assert" {
		return nil, fmt.Errorf("%s is no function", callee)
	}
	if p.macros[callee] {
		return nil, fmt.Errorf("%s is a macro", callee)
	}
	if p.is(p.to, ";") && p.beginsStatement() {
		p.to++
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
	return []edit{p.before("__extension__ ({ " + p.begin + " "), p.behind("; })")}, nil
}

// stored reports whether the piece names an object whose address is taken or that is changed.
func (p *piece) stored() bool {
	next, before := p.to, p.from-1
	joined := func(i int) bool { return i+1 < len(p.tokens) && p.tokens[i].end == p.tokens[i+1].start }
	switch {
	case p.is(next, ".") || p.is(next, "=") && !(joined(next) && p.is(next+1, "=")):
		return true
	case p.is(next, "+", "-") && joined(next) && (p.word(next) == p.word(next+1) || p.is(next+1, "=")):
		return true
	case p.is(before, "&"):
		return !(before > 0 && (p.tokens[before-1].kind == word && !p.is(before-1, "return") || p.tokens[before-1].kind == number || p.is(before-1, "]")))
	}
	return p.is(before, "+", "-") && p.is(before-1, p.word(before)) && joined(before-1)
}

// label reports whether the piece is in a label of a switch.
func (p *piece) label() bool {
	for i := p.from - 1; i >= 0 && !p.is(i, ";", "{", "}", ":"); i-- {
		if p.is(i, "case") {
			return true
		}
	}
	return false
}

// beginsStatement reports whether the piece is at the beginning of a statement.
func (p *piece) beginsStatement() bool {
	if around := int(p.outer[p.from]); around >= 0 && !p.is(around, "{") {
		return false // the head of a loop
	}
	before := p.from - 1
	for before >= 0 && p.tokens[before].kind == directive {
		before--
	}
	if p.is(before, ")") {
		i := p.opening(0, before)
		return p.is(i-1, "if", "while", "for", "switch") || p.is(i-1, "constexpr") && p.is(i-2, "if")
	}
	return before < 0 || p.is(before, ";", "{", "}", "else", "do")
}

// allowed checks what directives of OpenMP require of the statements that follow them.
func (p *piece) allowed() error {
	if form := p.at.Form; p.at.Kind == sir.OpenMP && strings.HasPrefix(form, "section") && form != "sections" {
		return errors.New("the sections of a directive are no statements of their own: measure a region inside")
	}
	if p.at.Kind == sir.Body || p.at.Kind == sir.OpenMP || p.at.around == nil {
		return p.nested()
	}
	around := p.at.around
	if around.Kind == sir.Loop && (p.at.Code != nil && p.at.Kind == sir.Call) {
		around = around.around // a part of the head of the loop
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
	if p.at.Kind != sir.Loop && p.at.Kind != sir.Body {
		return nil
	}
	for around := p.at.around; around != nil; around = around.around {
		switch around.Kind {
		case sir.Loop, sir.Body:
		case sir.OpenMP:
			at := p.find(p.lines.offset(around.Line, around.Code.Column))
			if text := p.word(at); strings.Contains(text, "collapse") || strings.Contains(text, "ordered") || strings.Contains(text, "tile") {
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
	if err := p.whole(p.from, p.to); err != nil {
		return err
	}
	for i := p.from; i < p.to; i++ {
		if p.is(i, "goto") && p.is(i+1, "*") {
			return errors.New("it has a goto to a computed label, after which its end is not executed")
		}
	}
	if err := p.cases(); err != nil {
		return err
	}
	return p.entered()
}

// whole checks that conditionals of the preprocessor begin and end among the tokens.
func (p *piece) whole(from, to int) error {
	depth := 0
	for i := from; i < to; i++ {
		if p.tokens[i].kind != directive {
			continue
		}
		name := strings.TrimSpace(strings.TrimPrefix(p.word(i), "#"))
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

// cases refuses labels of a switch that is around the tokens.
func (p *piece) cases() error {
	bodies := map[int]bool{} // braces of a switch
	open := 0
	var braces []bool
	for i := p.from; i < p.to; i++ {
		switch {
		case p.is(i, "switch"):
			if brace := p.behindBrackets(i + 1); p.is(brace, "{") {
				bodies[brace] = true
			}
		case p.is(i, "{"):
			braces = append(braces, bodies[i])
			if bodies[i] {
				open++
			}
		case p.is(i, "}") && len(braces) > 0:
			if braces[len(braces)-1] {
				open--
			}
			braces = braces[:len(braces)-1]
		case open == 0 && (p.is(i, "case") || p.is(i, "default") && p.is(i+1, ":") && p.afterStatement(i)):
			return errors.New("a label of a switch that is around leads into it")
		}
	}
	return nil
}

// behindBrackets returns the token behind the brackets that begin at a token.
func (p *piece) behindBrackets(i int) int {
	depth := 0
	for ; i < p.to; i++ {
		if p.is(i, "(") {
			depth++
		} else if p.is(i, ")") {
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}

// afterStatement reports whether a label may begin at a token.
func (p *piece) afterStatement(i int) bool {
	return p.is(i-1, ";", "{", "}", ")", ":", "else", "do") || i > 0 && p.tokens[i-1].kind == directive
}

// entered refuses tokens with a label to which a goto outside of them leads.
func (p *piece) entered() error {
	labels := map[string]bool{}
	for i := p.from; i < p.to; i++ {
		if p.tokens[i].kind == word && p.is(i+1, ":") && p.afterStatement(i) {
			labels[p.word(i)] = true
		}
	}
	if len(labels) == 0 {
		return nil
	}
	from, to := p.unit()
	for i := from; i < to; i++ {
		if i >= p.from && i < p.to {
			continue
		}
		if p.is(i-1, "goto") && (p.is(i, "*") || labels[p.word(i)]) || p.is(i-1, "&&") && labels[p.word(i)] && p.is(i-2, "=", "{", ",", "(") {
			return fmt.Errorf("a goto leads into it, at line %d", p.lines.of(int(p.tokens[i].start)))
		}
	}
	return nil
}
