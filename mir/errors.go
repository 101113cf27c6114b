package mir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind tells at which step a document was refused, so that a server can choose its status
// code.
type Kind int

const (
	Malformed   Kind = iota + 1 // not XML, or XML with a refused construct (a DTD)
	TooLarge                    // over one of the Limits
	Unsupported                 // well-formed, but the root is not an element of MIR
	Invalid                     // violates the schema or a rule of MIR's text
)

// Fault is one mistake in a document.
type Fault struct {
	Pos Position
	Msg string
}

func (f Fault) String() string {
	if f.Pos.Line == 0 {
		return f.Msg
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Pos.Line, f.Pos.Column, f.Msg)
}

// Error lists the faults that the failing step found, in the order of the document.
type Error struct {
	Kind   Kind
	Faults []Fault
}

func (e *Error) Error() string { return strings.Join(e.Messages(), "\n") }

// Messages returns the texts of an errors document: one for each fault.
func (e *Error) Messages() []string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.String()
	}
	return texts
}

// NewInvalid returns the error of a well-formed document with faults: sorted by position,
// without duplicates, and cut to a number that a person reads.
func NewInvalid(faults []Fault) *Error {
	const most = 20
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	faults = slices.Compact(faults)
	return &Error{Kind: Invalid, Faults: faults[:min(len(faults), most)]}
}

func refuse(kind Kind, pos Position, format string, args ...any) *Error {
	return &Error{Kind: kind, Faults: []Fault{{Pos: pos, Msg: fmt.Sprintf(format, args...)}}}
}

// Quote quotes text from outside for a message, and shortens it.
func Quote(text string) string {
	const most = 60
	if runes := []rune(text[:min(len(text), 4*most)]); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return `"` + text + `"`
}
