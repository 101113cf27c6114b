package weave

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mirador/sir"
)

// runtime defines what woven sources use. It becomes a part of each, so that they need no other file.
//
//go:embed mirador.h
var runtime string

// cSource is a source in C or C++.
type cSource struct {
	*Source
	tokens []token
	lines  lines
	cpp    bool
	outer  []int32         // the bracket around each token, and for a closing one what opens it; -1: none
	macros map[string]bool // with parameters
}

func newCSource(w *Weaving, s *Source) text { return readC(w, s) }

func readC(w *Weaving, s *Source) *cSource {
	c := &cSource{Source: s, tokens: tokensOf(s.Text, s.Language == "java"), lines: linesOf(s.Text), cpp: s.Language == "c++", macros: w.macros}
	c.nest()
	return c
}

// nest finds the brackets around tokens. Those in branches of conditionals that are dead are for themselves.
func (s *cSource) nest() {
	var live, dead []int32
	s.outer = make([]int32, len(s.tokens))
	for i, t := range s.tokens {
		open := &live
		if t.kind == directive {
			dead = nil
		}
		if t.dead {
			open = &dead
		}
		s.outer[i] = -1
		if n := len(*open); n > 0 {
			s.outer[i] = (*open)[n-1]
		}
		switch {
		case t.kind != sign:
		case s.is(i, "(", "[", "{"):
			*open = append(*open, int32(i))
		case s.is(i, ")", "]", "}") && len(*open) > 0:
			*open = (*open)[:len(*open)-1]
		}
	}
}

// woven returns the text with regions woven in. What it needs is before the first line, which keeps its number.
func (s *cSource) woven(weaving string, source int, regions []*located) ([]byte, error) {
	short := fmt.Sprintf("%.8s_%d", weaving, source+1)
	var edits []edit
	var defined strings.Builder
	var wrong []error
	for i, l := range regions {
		name := short + "_" + strconv.Itoa(i+1)
		inserted, err := s.region(l, "MIRADOR_REGION("+name+")")
		if err != nil {
			wrong = append(wrong, &Refusal{l.ID, err.Error()})
			continue
		}
		edits = append(edits, inserted...)
		fmt.Fprintf(&defined, "MIRADOR_DEFINE(%s, \"%s\")\n", name, inAssembly(l.name()))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	before := fmt.Sprintf("#ifndef MIRADOR_WOVEN_%s\n#define MIRADOR_WOVEN_%[1]s\n%sMIRADOR_WEAVING(\"%s\")\n%s#endif\n#line 1\n", short, runtime, weaving, &defined)
	return apply(s.Text, append(edits, edit{at: markSize(s.Text), depth: -1, text: before})), nil
}

// inAssembly returns a text as a string of C that is a string of the assembler: other characters than those of
// names are octal numbers of both.
func inAssembly(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; isLetterOrDigit(c) && c < 0x80 && c != '$' || strings.IndexByte("/:.~@-+*", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\\%03o`, c)
		}
	}
	return b.String()
}

// region returns what is inserted for a region. The error says why it cannot be woven.
func (s *cSource) region(l *located, begin string) ([]edit, error) {
	p, err := s.piece(l, begin)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.allowed(), p.executed()); err != nil {
		return nil, err
	}
	switch l.Kind {
	case sir.Function, sir.Method, sir.Lambda:
		return p.function()
	case sir.Catch:
		return p.inBraces()
	case sir.Call:
		return p.call()
	case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Body, sir.Return, sir.Throw, sir.Try, sir.OpenMP:
		return p.statement()
	case sir.Branch:
		if form := l.Form; form == "case" || form == "default" || form == "type" {
			return nil, errors.New("the statements behind a label of a switch are no block: measure regions inside, or the switch")
		}
		return p.statement()
	}
	return nil, fmt.Errorf("a region of the type %s is an expression, and only statements can be woven", l.Kind)
}

// piece returns the tokens of a region.
func (s *cSource) piece(l *located, begin string) (*piece, error) {
	start, end, ok := l.extent(s.lines, len(s.Text))
	from, to := s.find(start), s.find(end)
	switch {
	case len(s.tokens) > mostTokens:
		return nil, fmt.Errorf("its source has more than %d words and signs", mostTokens)
	case len(l.name()) > longestID:
		return nil, errors.New("its id is too long")
	case !ok || from >= to || int(s.tokens[from].start) != start || int(s.tokens[to-1].end) != end:
		return nil, errors.New("its text does not begin and end with words of the language, as where a macro makes it")
	}
	return &piece{s, l, from, to, begin}, nil
}

// find returns the first token that begins at a byte or behind it.
func (s *cSource) find(offset int) int {
	i, _ := slices.BinarySearchFunc(s.tokens, offset, func(t token, at int) int { return int(t.start) - at })
	return i
}

// is reports whether a token is one of some words or signs. No token is before the first and behind the last one.
func (s *cSource) is(i int, texts ...string) bool {
	if i < 0 || i >= len(s.tokens) || s.tokens[i].kind == quoted {
		return false
	}
	own := s.Text[s.tokens[i].start:s.tokens[i].end]
	for _, text := range texts {
		if string(own) == text {
			return true
		}
	}
	return false
}

// word returns the text of a token.
func (s *cSource) word(i int) string { return string(s.Text[s.tokens[i].start:s.tokens[i].end]) }

// opening returns the bracket that a closing one belongs to, -1 if there is none from a token on.
func (s *cSource) opening(from, closing int) int {
	if closing < from || !s.is(closing, ")", "]", "}") || int(s.outer[closing]) < from {
		return -1
	}
	return int(s.outer[closing])
}
