package syntax

import (
	"errors"
	"fmt"
	"strings"

	"mirador/sir/weave/woven"
)

// Piece is the text of a region: its tokens.
type Piece struct {
	*Source
	At       *woven.Region
	From, To int
	Begin    string // what begins the region
}

// Piece returns the tokens of a region.
func (s *Source) Piece(l *woven.Region, begin string) (*Piece, error) {
	start, end, ok := l.Span(s.Lines, len(s.Text))
	from, to := s.Find(start), s.Find(end)
	switch {
	case len(s.Tokens) > MostTokens:
		return nil, fmt.Errorf("its source has more than %d words and signs", MostTokens)
	case len(l.Note()) > woven.LongestID:
		return nil, errors.New("its id is too long")
	case !ok || from >= to || int(s.Tokens[from].Start) != start || int(s.Tokens[to-1].End) != end:
		return nil, errors.New("its text does not begin and end with words of the language, as where a macro makes it")
	}
	return &Piece{s, l, from, to, begin}, nil
}

// Before inserts a text before the region. A directive stays at the beginning of its line, which keeps its number.
func (p *Piece) Before(text string) woven.Edit {
	e := woven.Edit{At: int(p.Tokens[p.From].Start), Depth: p.At.Depth, Text: text}
	if p.Tokens[p.From].Kind == Directive {
		line := p.Lines.Of(e.At)
		e.At = int(p.Lines[line-1])
		e.Text = fmt.Sprintf("%s\n#line %d\n", strings.TrimSpace(text), line)
	}
	return e
}

// Behind inserts a text behind the region. Behind a directive that is on the next line.
func (p *Piece) Behind(text string) woven.Edit {
	last := p.Tokens[p.To-1]
	e := woven.Edit{At: int(last.End), Depth: p.At.Depth, End: true, Text: text}
	if last.Kind != Directive {
		return e
	}
	if e.At < len(p.Text) {
		e.At++
		e.Text = strings.TrimSpace(text) + " "
	} else {
		e.Text = "\n" + strings.TrimSpace(text)
	}
	return e
}

// Unit returns the tokens of the function that contains the piece.
func (p *Piece) Unit() (from, to int) {
	l := p.At
	for l.Around != nil && l.Extent == nil {
		l = l.Around
	}
	start, end, _ := l.Span(p.Lines, len(p.Text))
	return p.Find(start), p.Find(end)
}

// BeginsStatement reports whether the piece is at the beginning of a statement.
func (p *Piece) BeginsStatement() bool {
	if around := int(p.Outer[p.From]); around >= 0 && !p.Is(around, "{") {
		return false // the head of a loop
	}
	before := p.From - 1
	for before >= 0 && p.Tokens[before].Kind == Directive {
		before--
	}
	if p.Is(before, ")") {
		i := p.Opening(0, before)
		return p.Is(i-1, "if", "while", "for", "switch") || p.Is(i-1, "constexpr") && p.Is(i-2, "if")
	}
	return before < 0 || p.Is(before, ";", "{", "}", "else", "do")
}

// AfterStatement reports whether a label may begin at a token.
func (p *Piece) AfterStatement(i int) bool {
	return p.Is(i-1, ";", "{", "}", ")", ":", "else", "do") || i > 0 && p.Tokens[i-1].Kind == Directive
}

// Cases refuses labels of a switch that is around the tokens.
func (p *Piece) Cases() error {
	bodies := map[int]bool{} // braces of a switch
	open := 0
	var braces []bool
	for i := p.From; i < p.To; i++ {
		switch {
		case p.Is(i, "switch"):
			if brace := p.BehindBrackets(i + 1); p.Is(brace, "{") {
				bodies[brace] = true
			}
		case p.Is(i, "{"):
			braces = append(braces, bodies[i])
			if bodies[i] {
				open++
			}
		case p.Is(i, "}") && len(braces) > 0:
			if braces[len(braces)-1] {
				open--
			}
			braces = braces[:len(braces)-1]
		case open == 0 && (p.Is(i, "case") || p.Is(i, "default") && p.Is(i+1, ":") && p.AfterStatement(i)):
			return errors.New("a label of a switch that is around leads into it")
		}
	}
	return nil
}

// BehindBrackets returns the token behind the brackets that begin at a token.
func (p *Piece) BehindBrackets(i int) int {
	depth := 0
	for ; i < p.To; i++ {
		if p.Is(i, "(") {
			depth++
		} else if p.Is(i, ")") {
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}
