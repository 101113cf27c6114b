package syntax

import (
	"fmt"
	"strings"
)

// Limits of a request, so that a hostile text costs little.
const (
	MaxText   = 4 << 20 // bytes
	MaxDepth  = 32      // lists within lists
	MaxValues = 1 << 18
	MaxErrors = 10 // reported for one text
)

// Error is one error in a text.
type Error struct {
	Pos int // byte offset
	Msg string
}

func (e Error) Error() string { return fmt.Sprintf("position %d: %s", e.Pos, e.Msg) }

// Errors has the errors in a text, ordered by position.
type Errors []Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "; ")
}
