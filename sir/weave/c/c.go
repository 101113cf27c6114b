// Package c weaves regions into sources in C and C++: where a region begins and ends is an instruction nop with a note.
package c

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mirador/sir"
	"mirador/sir/weave/syntax"
	"mirador/sir/weave/woven"
)

// runtime defines what woven sources use. It becomes a part of each, so that they need no other file.
//
//go:embed mirador.h
var runtime string

// Source is a source in C or C++.
type Source struct {
	*syntax.Source
	program *woven.Program
	number  int // of the source
	cpp     bool
}

// Read reads a source of a program.
func Read(p *woven.Program, source int) *Source {
	s := &p.Sources[source]
	return &Source{syntax.Read(s), p, source, s.Language == "c++"}
}

// Weave returns the text with regions woven in. What it needs is before the first line, which keeps its number.
func (s *Source) Weave(regions []*woven.Region) ([]byte, error) {
	short := fmt.Sprintf("%.8s_%d", s.program.ID, s.number+1)
	var edits []woven.Edit
	var defined strings.Builder
	var wrong []error
	for i, l := range regions {
		name := short + "_" + strconv.Itoa(i+1)
		inserted, err := s.region(l, "MIRADOR_REGION("+name+")")
		if err != nil {
			wrong = append(wrong, &woven.Refusal{ID: l.ID, Why: err.Error()})
			continue
		}
		edits = append(edits, inserted...)
		fmt.Fprintf(&defined, "MIRADOR_DEFINE(%s, \"%s\")\n", name, woven.InAssembly(l.Note()))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	before := fmt.Sprintf("#ifndef MIRADOR_WOVEN_%s\n#define MIRADOR_WOVEN_%[1]s\n%sMIRADOR_WEAVING(\"%s\")\n%s#endif\n#line 1\n", short, runtime, s.program.ID, &defined)
	return woven.Apply(s.Text, append(edits, woven.Edit{At: syntax.MarkSize(s.Text), Depth: -1, Text: before})), nil
}

// region returns what is inserted for a region. The error says why it cannot be woven.
func (s *Source) region(l *woven.Region, begin string) ([]woven.Edit, error) {
	found, err := s.Piece(l, begin)
	if err != nil {
		return nil, err
	}
	p := &piece{found, s.cpp, s.program.Macros}
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
	case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Scope, sir.Body, sir.Return, sir.Throw, sir.Try, sir.OpenMP:
		return p.statement()
	case sir.Branch:
		if form := l.Form; form == "case" || form == "default" || form == "type" {
			return nil, errors.New("the statements behind a label of a switch are no block: measure regions inside, or the switch")
		}
		return p.statement()
	}
	return nil, fmt.Errorf("a region of the type %s is an expression, and only statements can be woven", l.Kind)
}
