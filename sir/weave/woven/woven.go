// Package woven has what the languages of package weave share: sources, regions with those around them, the edits that
// put them into the text, and the names that woven programs say.
package woven

import (
	"fmt"

	"mirador/sir"
)

// Source is a source file.
type Source struct {
	Path     string // in the positions of regions
	Language string
	Text     []byte
	// Fixed sources are not woven. What they define is known.
	Fixed bool
}

// Program has the sources of a program, as they are without woven regions.
type Program struct {
	ID      string // of the weaving
	Sources []Source
	Regions [][]*Region // by source
	// Macros of C are those with parameters, and Jumping are those of Fortran that contain a jump.
	Macros, Jumping map[string]bool
}

// File is a file to write.
type File struct {
	Source int    // number of the source that it is, or that it is beside
	Suffix string // "" for the source; otherwise the file has this in place of the extension of the source
	Text   []byte
}

// Refusal is the reason why a region cannot be woven.
type Refusal struct{ ID, Why string }

func (e *Refusal) Error() string { return fmt.Sprintf("%s cannot be woven: %s", e.ID, e.Why) }

// Region is a region with those around it.
type Region struct {
	*sir.Region
	Around *Region // nil for an outermost unit
	Source int     // number of its source
	Depth  int
}

// LongestID limits ids, which are texts in assembly code.
const LongestID = 1000

// Note returns what the notes about a region say: its kind and its id.
func (r *Region) Note() string { return string(r.Kind) + ":" + r.ID }

// Span returns where the text of a region begins and ends. ok is false if the source has no such text.
func (r *Region) Span(of Lines, size int) (start, end int, ok bool) {
	column, endLine, endColumn := 0, 0, 0
	switch {
	case r.Code != nil:
		column, endLine, endColumn = r.Code.Column, r.Code.EndLine, r.Code.EndColumn
	case r.Extent != nil:
		column, endLine, endColumn = r.Extent.Column, r.Extent.EndLine, r.Extent.EndColumn
	}
	start, end = of.Offset(r.Line, column), of.Offset(endLine, endColumn)+1
	return start, end, start >= 0 && end > start && end <= size
}
