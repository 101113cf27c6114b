package syntax

import (
	"slices"

	"mirador/sir/weave/woven"
)

// Source is a source as its words and signs.
type Source struct {
	*woven.Source
	Tokens []Token
	Lines  woven.Lines
	Outer  []int32 // the bracket around each token, and for a closing one what opens it; -1: none
}

// Read returns the words and signs of a source.
func Read(s *woven.Source) *Source {
	r := &Source{Source: s, Tokens: tokensOf(s.Text, s.Language == "java"), Lines: woven.LinesOf(s.Text)}
	r.nest()
	return r
}

// nest finds the brackets around tokens. Those in branches of conditionals that are dead are for themselves.
func (s *Source) nest() {
	var live, dead []int32
	s.Outer = make([]int32, len(s.Tokens))
	for i, t := range s.Tokens {
		open := &live
		if t.Kind == Directive {
			dead = nil
		}
		if t.Dead {
			open = &dead
		}
		s.Outer[i] = -1
		if n := len(*open); n > 0 {
			s.Outer[i] = (*open)[n-1]
		}
		switch {
		case t.Kind != Sign:
		case s.Is(i, "(", "[", "{"):
			*open = append(*open, int32(i))
		case s.Is(i, ")", "]", "}") && len(*open) > 0:
			*open = (*open)[:len(*open)-1]
		}
	}
}

// Find returns the first token that begins at a byte or behind it.
func (s *Source) Find(offset int) int {
	i, _ := slices.BinarySearchFunc(s.Tokens, offset, func(t Token, at int) int { return int(t.Start) - at })
	return i
}

// Is reports whether a token is one of some words or signs. No token is before the first and behind the last one.
func (s *Source) Is(i int, texts ...string) bool {
	if i < 0 || i >= len(s.Tokens) || s.Tokens[i].Kind == Quoted {
		return false
	}
	own := s.Text[s.Tokens[i].Start:s.Tokens[i].End]
	for _, text := range texts {
		if string(own) == text {
			return true
		}
	}
	return false
}

// Word returns the text of a token.
func (s *Source) Word(i int) string { return string(s.Text[s.Tokens[i].Start:s.Tokens[i].End]) }

// Opening returns the bracket that a closing one belongs to, -1 if there is none from a token on.
func (s *Source) Opening(from, closing int) int {
	if closing < from || !s.Is(closing, ")", "]", "}") || int(s.Outer[closing]) < from {
		return -1
	}
	return int(s.Outer[closing])
}
