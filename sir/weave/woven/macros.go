package woven

import (
	"bytes"
	"iter"
)

// LinesWith returns the lines that contain a text, and where they begin. Of a long source most lines are not looked at.
func LinesWith(text []byte, part string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for from := 0; ; {
			i := bytes.Index(text[from:], []byte(part))
			if i < 0 {
				return
			}
			begin := bytes.LastIndexByte(text[:from+i], '\n') + 1
			from = endOfLine(text, from+i)
			if !yield(begin, text[begin:from]) {
				return
			}
		}
	}
}

// Macro is a macro of the preprocessor.
type Macro struct {
	Name       string
	Parameters bool
	Text       []byte // what follows the name, with all its lines
}

// Macros returns the macros that a text defines.
func Macros(text []byte) iter.Seq[Macro] {
	return func(yield func(Macro) bool) {
		end := 0
		for at, line := range LinesWith(text, "#") {
			if m, ok := macro(line); at >= end && ok {
				end = endOfContinued(text, at)
				m.Text = text[at+len(line)-len(m.Text) : end]
				if !yield(m) {
					return
				}
			}
		}
	}
}

// macro returns the macro that a line defines.
func macro(line []byte) (m Macro, ok bool) {
	line, ok = bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("#"))
	if !ok {
		return m, false
	}
	line, ok = bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("define"))
	name := bytes.TrimLeft(line, " \t")
	if !ok || len(name) == len(line) {
		return m, false
	}
	n := 0
	for n < len(name) && IsLetterOrDigit(name[n]) {
		n++
	}
	return Macro{string(name[:n]), n < len(name) && name[n] == '(', name[n:]}, n > 0
}

// endOfLine returns the byte behind a line.
func endOfLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// endOfContinued returns the byte behind a line that backslashes may continue.
func endOfContinued(text []byte, at int) int {
	for {
		next := endOfLine(text, at)
		line := bytes.TrimSuffix(bytes.TrimSuffix(text[at:next], []byte("\n")), []byte("\r"))
		if next == len(text) || !bytes.HasSuffix(line, []byte(`\`)) {
			return next
		}
		at = next
	}
}
