package woven

import (
	"cmp"
	"slices"
)

// Edit is a text to insert into a source.
type Edit struct {
	At    int // byte of the source before which the text is inserted
	Depth int // of the region
	End   bool
	Text  string
}

// Apply inserts texts. At one place regions end before others begin, inner ones end before outer ones, and
// outer ones begin before inner ones.
func Apply(text []byte, edits []Edit) []byte {
	slices.SortStableFunc(edits, func(a, b Edit) int {
		inner := cmp.Compare(a.Depth, b.Depth)
		if a.End {
			inner = -inner
		}
		return cmp.Or(cmp.Compare(a.At, b.At), endsFirst(a, b), inner)
	})
	var out []byte
	from := 0
	for _, e := range edits {
		out = append(append(out, text[from:e.At]...), e.Text...)
		from = e.At
	}
	return append(out, text[from:]...)
}

func endsFirst(a, b Edit) int {
	switch {
	case a.End == b.End:
		return 0
	case a.End:
		return -1
	}
	return 1
}

// Lines has where the lines of a text begin.
type Lines []int32

// LinesOf returns the lines of a text.
func LinesOf(text []byte) Lines {
	starts := Lines{0}
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, int32(i+1))
		}
	}
	return starts
}

// Offset returns the byte at a position, whose columns count bytes from 1. It is -1 if there is no such line.
func (l Lines) Offset(line, column int) int {
	if line < 1 || line > len(l) || column < 1 {
		return -1
	}
	return int(l[line-1]) + column - 1
}

// Of returns the number of the line with a byte, from 1.
func (l Lines) Of(offset int) int {
	i, found := slices.BinarySearch(l, int32(offset))
	if found {
		return i + 1
	}
	return i
}
