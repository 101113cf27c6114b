package outline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"

	"mirador/sir"
)

const mostGaps = 100 // of a file; the others are counted

type position struct{ line, column int }

// lineStarts returns where each line begins.
func lineStarts(text []byte) []int {
	starts := []int{0}
	for at := 0; ; {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return starts
		}
		at += i + 1
		starts = append(starts, at)
	}
}

// at returns the position of a byte. Columns count bytes, as compilers do.
func (b *builder) at(offset int) position {
	offset = min(max(offset, 0), len(b.file.Text))
	line := sort.SearchInts(b.lines, offset+1)
	return position{line, offset - b.lines[line-1] + 1}
}

// resource returns the description of the file, with its gaps in order.
func (b *builder) resource() sir.Resource {
	sum := sha256.Sum256(b.file.Text)
	r := sir.Resource{In: b.file.In, Out: b.file.Out, Hash: hex.EncodeToString(sum[:]), Language: b.file.Language}
	gaps := b.file.Gaps
	slices.SortStableFunc(gaps, func(a, b Gap) int { return a.Start - b.Start })
	for i, g := range gaps {
		if i == mostGaps {
			r.MoreGaps = len(gaps) - mostGaps + b.file.more
			break
		}
		first, last := b.at(g.Start), b.at(max(g.Start, g.End-1))
		r.Gaps = append(r.Gaps, sir.Gap{Line: first.line, Column: first.column, EndLine: last.line, EndColumn: last.column, Reason: g.Reason})
	}
	return r
}
