package syntax

import (
	"fmt"
	"strings"
)

// Bounds of a request, so that a hostile text costs no more than it is worth.
const (
	MaxText   = 4 << 20 // bytes
	MaxDepth  = 32      // lists within lists
	MaxValues = 1 << 18
	MaxErrors = 10 // reported at once
)

// Error is one thing wrong with a text.
type Error struct {
	Pos int // byte offset
	Msg string
}

func (e Error) Error() string { return fmt.Sprintf("position %d: %s", e.Pos, e.Msg) }

// Errors is everything found wrong with a text, in the order of the positions.
type Errors []Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "; ")
}
