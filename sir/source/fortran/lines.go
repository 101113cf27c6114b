package fortran

import (
	"bytes"
	"strings"
)

// statement is a statement of one or more lines. Its text is in lower case, without blanks, comments
// and the contents of strings, because blanks mean nothing in fixed form.
type statement struct {
	text       string
	at         []int32 // where each byte of text is in the file
	spaced     []bool  // of each byte: a blank is before it
	label      string
	start, end int
	broken     bool // it continues one that a line of the preprocessor ended
}

// part returns a part of a statement.
func (s *statement) part(from, to int) statement {
	p := statement{text: s.text[from:to], at: s.at[from:to], spaced: s.spaced[from:to], start: s.end, end: s.end}
	if from < to {
		p.start, p.end = int(s.at[from]), int(s.at[to-1])+1
	}
	return p
}

// events are what a file consists of, in order.
type events interface {
	statement(s *statement)
	directive(text string, start, end int)    // of OpenMP, without the sentinel
	preprocessor(line string, start, end int) // without the #
	damaged(start, end int, reason string)
}

// reader splits a file into statements.
type reader struct {
	file  []byte
	fixed bool
	to    events
	now   statement
	text  []byte
	quote byte // of a string that continues
	blank bool
	begun bool // the statement may continue

	omp                bytes.Buffer
	ompStart, ompEnd   int
	ompOpen, ompJoined bool
}

// longest is the number of bytes of a statement that are read. Fortran 2023 allows a million.
const longest = 1 << 20

func (r *reader) read() {
	for at := 0; at < len(r.file); {
		end := len(r.file)
		next := end
		if i := bytes.IndexByte(r.file[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		r.line(at, end-trailing(r.file[at:end]))
		at = next
	}
	r.finish()
	r.finishDirective()
}

// trailing counts blanks at the end of a line.
func trailing(line []byte) int {
	return len(line) - len(bytes.TrimRight(line, " \t\r\f"))
}

func (r *reader) line(at, end int) {
	line := r.file[at:end]
	if len(line) == 0 {
		return
	}
	if line[0] == '#' {
		if r.finishDirective(); r.fixed {
			r.finish()
		}
		r.to.preprocessor(string(line[1:]), at, end)
		return
	}
	if from := r.sentinel(line); from > 0 {
		r.openMP(at, at+from, end)
		return
	}
	if r.fixed {
		r.fixedLine(at, end)
	} else {
		r.freeLine(at, end)
	}
}

// sentinel returns where the text behind a sentinel of OpenMP begins, 0 if the line has none.
func (r *reader) sentinel(line []byte) int {
	i := 0
	if !r.fixed {
		i = len(line) - len(bytes.TrimLeft(line, " \t"))
	}
	if len(line) < i+5 || !strings.EqualFold(string(line[i+1:i+5]), "$omp") {
		return 0
	}
	if c := line[i]; c == '!' || r.fixed && (c == 'c' || c == 'C' || c == '*') {
		return i + 5
	}
	return 0
}

// openMP reads a line with a directive, which may continue another one.
func (r *reader) openMP(start, from, end int) {
	r.finish()
	text := r.file[from:end]
	if i := bytes.IndexByte(text, '!'); i >= 0 {
		text = text[:i]
	}
	continues := r.ompJoined
	if r.fixed {
		continues = len(text) > 0 && text[0] != ' ' && text[0] != '0' && text[0] != '\t'
		if len(text) > 0 && (continues || text[0] == '0') {
			text = text[1:]
		}
	}
	if !continues || !r.ompOpen {
		r.finishDirective()
		r.ompStart = start + len(r.file[start:from]) - len(bytes.TrimLeft(r.file[start:from], " \t"))
		r.ompOpen = true
	}
	text = bytes.TrimSpace(text)
	r.ompJoined = false
	if !r.fixed {
		text = bytes.TrimPrefix(text, []byte("&"))
		if r.ompJoined = bytes.HasSuffix(text, []byte("&")); r.ompJoined {
			text = text[:len(text)-1]
		}
	}
	r.ompEnd = from + len(bytes.TrimRight(r.file[from:end], " \t"))
	if r.omp.Len()+len(text) < longest {
		r.omp.WriteByte(' ')
		r.omp.Write(text)
	}
	if !r.fixed && !r.ompJoined {
		r.finishDirective()
	}
}

func (r *reader) finishDirective() {
	if r.ompOpen {
		r.ompOpen, r.ompJoined = false, false
		r.to.directive(r.omp.String(), r.ompStart, r.ompEnd)
		r.omp.Reset()
	}
}

// fixedLine reads a line in fixed form: a label in columns 1 to 5, a sign of continuation in column
// 6, the statement in columns 7 to 72. A tab before them ends the label.
func (r *reader) fixedLine(at, end int) {
	line := r.file[at:end]
	if strings.IndexByte("cC*!dD", line[0]) >= 0 {
		return
	}
	label, from, continues := fixedFields(line)
	if len(line) > 72 && bytes.IndexByte(line[:min(6, len(line))], '\t') < 0 {
		line = line[:72]
	}
	if from >= len(line) && label == "" || bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("!")) && !continues {
		return
	}
	if !continues || !r.begun {
		r.finish()
		r.now.label, r.now.broken, r.begun = label, continues, true
	}
	r.finishDirective()
	if from < len(line) {
		r.characters(at+from, at+len(line))
	}
}

// fixedFields returns the label of a line, where its statement begins, and whether it continues another.
func fixedFields(line []byte) (label string, from int, continues bool) {
	head := line[:min(6, len(line))]
	if i := bytes.IndexByte(head, '\t'); i >= 0 {
		from = i + 1
		label = string(bytes.TrimSpace(line[:i]))
		if from < len(line) && line[from] >= '1' && line[from] <= '9' {
			return label, from + 1, true
		}
		return label, from, false
	}
	label = strings.ReplaceAll(string(line[:min(5, len(line))]), " ", "")
	if i := strings.IndexByte(label, '!'); i >= 0 {
		return label[:i], len(line), false
	}
	return label, 6, len(line) > 5 && line[5] != ' ' && line[5] != '0'
}

// freeLine reads a line in free form.
func (r *reader) freeLine(at, end int) {
	from := at
	for from < end && (r.file[from] == ' ' || r.file[from] == '\t') {
		from++
	}
	if from == end || r.file[from] == '!' && r.quote == 0 {
		return
	}
	r.finishDirective()
	if r.begun && r.file[from] == '&' {
		from++
	} else if !r.begun {
		from = r.freeLabel(from, end)
	} else if r.quote == 0 {
		r.blank = true
	}
	r.begun = r.characters(from, end)
	if !r.begun {
		r.finish()
	}
}

func (r *reader) freeLabel(from, end int) int {
	i := from
	for i < end && r.file[i] >= '0' && r.file[i] <= '9' {
		i++
	}
	if i == from || i == end || r.file[i] != ' ' && r.file[i] != '\t' {
		return from
	}
	r.now.label = string(r.file[from:i])
	return i + 1
}

// characters reads a part of a line. In free form it reports whether the statement goes on.
func (r *reader) characters(at, end int) (goesOn bool) {
	for ; at < end; at++ {
		c := r.file[at]
		switch {
		case r.quote != 0:
			if !r.fixed && c == '&' && r.lastBefore(at+1, end) {
				return true
			}
			if c == r.quote {
				r.put(c, at)
				r.quote = 0
			}
		case c == '\'' || c == '"':
			r.put(c, at)
			r.quote = c
		case c == '!':
			return false
		case c == ' ' || c == '\t' || c == '\f' || c == '\r':
			r.blank = true
		case c == ';':
			r.finish()
			r.begun = r.fixed
		case c == '&' && !r.fixed && r.lastBefore(at+1, end):
			return true
		default:
			r.put(c, at)
		}
	}
	if r.quote != 0 && !r.fixed {
		r.to.damaged(at-1, at, "a string does not end")
		r.quote = 0
	}
	return false
}

// lastBefore reports whether only blanks and a comment follow.
func (r *reader) lastBefore(at, end int) bool {
	for ; at < end; at++ {
		switch r.file[at] {
		case ' ', '\t', '\r':
		case '!':
			return r.quote == 0
		default:
			return false
		}
	}
	return true
}

func (r *reader) put(c byte, at int) {
	if len(r.text) >= longest {
		return
	}
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	r.text = append(r.text, c)
	r.now.at = append(r.now.at, int32(at))
	r.now.spaced = append(r.now.spaced, r.blank)
	r.blank = false
}

// finish passes the statement on.
func (r *reader) finish() {
	if r.quote != 0 {
		r.quote = 0
		if n := len(r.now.at); n > 0 {
			r.to.damaged(int(r.now.at[n-1]), int(r.now.at[n-1])+1, "a string does not end")
		}
	}
	if n := len(r.text); n > 0 {
		r.now.text = string(r.text)
		r.now.start, r.now.end = int(r.now.at[0]), int(r.now.at[n-1])+1
		if n >= longest {
			r.to.damaged(r.now.start, r.now.end, "this statement is too long")
		}
		r.to.statement(&r.now)
	}
	r.text, r.now.at, r.now.spaced = r.text[:0], r.now.at[:0], r.now.spaced[:0]
	r.now.label, r.now.broken, r.blank, r.begun = "", false, false, false
}
