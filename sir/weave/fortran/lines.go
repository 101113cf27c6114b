package fortran

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// phase orders what is inserted at one place.
type phase int

const (
	landing  phase = iota // jumps to labels outside of regions
	ending                // regions end
	starting              // regions begin
	leaving               // regions end before a jump
	last                  // what is before the end of a unit
)

// site is how statements are inserted at a place.
type site int

const (
	atLine      site = iota // before a line
	behindLabel             // the first one gets the label
	inLine                  // the line is divided
	behindIf                // the line is divided, and IF (…) becomes IF (…) THEN
)

// place is where statements can be inserted.
type place struct {
	at   int // byte
	site site
}

// insertion is a statement to insert.
type insertion struct {
	place
	phase phase
	order int // in the phase
	text  string
}

// replacement is a label to write in place of another one.
type replacement struct {
	from, to int
	label    string
	ends     bool // nothing of the statement follows
}

// front returns the place before a statement, behind its label.
func (f *Source) front(i int) place {
	s := &f.statements[i]
	begin := int(f.lines[f.lines.Of(s.Start)-1])
	prefix := f.Text[begin:s.Start]
	blank := len(bytes.Trim(prefix, " \t")) == 0 || f.fixed && len(prefix) == 6 && string(prefix) == "     0"
	switch {
	case s.Label == "" && blank:
		return place{begin, atLine}
	case s.Label == "":
		return place{s.Start, inLine}
	case !f.fixed:
		return place{s.Start, behindLabel}
	}
	if tab := bytes.IndexByte(prefix, '\t'); tab >= 0 && tab < 6 {
		return place{begin + tab + 1, behindLabel}
	}
	return place{min(begin+6, s.Start), behindLabel}
}

// behind returns the place behind a statement.
func (f *Source) behind(i int) place {
	at := f.statements[i].End
	line := f.lines.Of(at - 1)
	begin := int(f.lines[line-1])
	limit := begin + len(f.line(line))
	if f.fixed && at-begin <= 72 && bytes.IndexByte(f.Text[begin:min(begin+6, limit)], '\t') < 0 {
		limit = min(limit, begin+72) // what follows is a comment
	}
	divided := false
	for ; at < limit && strings.IndexByte("; \t\f\r", f.Text[at]) >= 0; at++ {
		divided = divided || f.Text[at] == ';'
	}
	if divided && at < limit && strings.IndexByte("\n!&", f.Text[at]) < 0 {
		return place{at, inLine}
	}
	for line++; line <= len(f.lines) && f.fixed && f.continues(f.line(line)); {
		line++
	}
	if line > len(f.lines) {
		return place{len(f.Text), atLine}
	}
	return place{int(f.lines[line-1]), atLine}
}

// continues reports whether a line in fixed form continues a statement.
func (f *Source) continues(line []byte) bool {
	if tab := bytes.IndexByte(line[:min(6, len(line))], '\t'); tab >= 0 {
		return len(line) > tab+1 && line[tab+1] >= '1' && line[tab+1] <= '9' && len(bytes.TrimLeft(line[:tab], " ")) == 0
	}
	return len(line) > 6 && string(line[:5]) == "     " && line[5] != ' ' && line[5] != '0' && line[5] != '\n' && line[5] != '\r'
}

// blanks returns blanks, and the tabs of a text, of its length.
func blanks(text []byte) string {
	out := bytes.Repeat([]byte{' '}, len(text))
	for i, c := range text {
		if c == '\t' {
			out[i] = c
		}
	}
	return string(out)
}

// written returns the source with insertions and replacements. Lines that follow have their numbers.
func (f *Source) written(list []insertion, replaced []replacement) []byte {
	slices.SortStableFunc(list, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.phase, b.phase), cmp.Compare(a.order, b.order))
	})
	slices.SortFunc(replaced, func(a, b replacement) int { return a.from - b.from })
	var out bytes.Buffer
	from := 0
	copyTo := func(at int) {
		for len(replaced) > 0 && replaced[0].from < at {
			r := replaced[0]
			out.Write(f.Text[from:r.from])
			out.WriteString(f.relabelled(r))
			from, replaced = r.to, replaced[1:]
		}
		out.Write(f.Text[from:at])
		from = at
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].at == list[0].at {
			n++
		}
		copyTo(list[0].at)
		f.insert(&out, list[:n])
		list = list[n:]
	}
	copyTo(len(f.Text))
	return out.Bytes()
}

// insert writes the insertions at one place.
func (f *Source) insert(out *bytes.Buffer, list []insertion) {
	at := list[0].place
	line := f.lines.Of(at.at)
	if at.at == len(f.Text) {
		line = len(f.lines)
	}
	before := f.Text[f.lines[line-1]:at.at]
	indent := "      "
	if !f.fixed {
		text := f.line(line)
		indent = string(text[:len(text)-len(bytes.TrimLeft(text, " \t"))])
	}
	switch {
	case at.site == behindIf && f.fixed && len(before) > 68 && bytes.IndexByte(before, '\t') < 0:
		out.WriteString("\n     &then\n")
	case at.site == behindIf:
		out.WriteString("then\n")
	case at.site == inLine, at.at == len(f.Text) && len(before) > 0:
		out.WriteByte('\n')
	}
	for i, s := range list {
		if s.text == "" {
			continue
		}
		if !(i == 0 && at.site == behindLabel) && (s.text[0] < '0' || s.text[0] > '9') {
			out.WriteString(indent)
		}
		out.WriteString(s.text + "\n")
	}
	if at.at < len(f.Text) {
		fmt.Fprintf(out, "# %d\n", line)
		if at.site != atLine {
			out.WriteString(blanks(before))
		}
	}
}

// relabelled returns a label that is written into a statement, on a line of its own.
func (f *Source) relabelled(r replacement) string {
	line := f.lines.Of(r.to)
	switch {
	case !f.fixed && r.ends:
		return fmt.Sprintf("&\n&%s", r.label)
	case !f.fixed:
		return fmt.Sprintf("&\n&%s&\n# %d\n&", r.label, line)
	}
	column := r.to - int(f.lines[line-1])
	return fmt.Sprintf("\n     &%s\n# %d\n     &%*s", r.label, line, max(0, column-6), "")
}
