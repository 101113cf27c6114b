package mir

import (
	"bufio"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// writer writes XML element by element. The bufio.Writer keeps the first error of the
// underlying stream, and finish returns it.
type writer struct {
	out     *bufio.Writer
	indent  string
	names   []string // of the open elements
	pending bool     // the innermost start tag is not yet closed by >
	text    bool     // the innermost element contains text: do not add white space
}

// writers is a pool, because the buffers are expensive to allocate.
var writers = sync.Pool{New: func() any { return &writer{out: bufio.NewWriter(nil)} }}

func newWriter(out io.Writer, indent string) *writer {
	w := writers.Get().(*writer)
	w.out.Reset(out)
	w.indent = indent
	return w
}

// finish ends the document and returns the writer to the pool.
func (w *writer) finish() error {
	w.out.WriteByte('\n')
	err := w.out.Flush()
	w.out.Reset(nil)
	*w = writer{out: w.out, names: w.names[:0]}
	writers.Put(w)
	return err
}

func (w *writer) begin(name string) {
	if w.pending {
		w.out.WriteByte('>')
	}
	w.newline()
	w.out.WriteByte('<')
	w.out.WriteString(name)
	w.names = append(w.names, name)
	w.pending, w.text = true, false
}

func (w *writer) end() {
	name := w.names[len(w.names)-1]
	w.names = w.names[:len(w.names)-1]
	if w.pending {
		w.out.WriteString("/>")
	} else {
		if !w.text {
			w.newline()
		}
		w.out.WriteString("</")
		w.out.WriteString(name)
		w.out.WriteByte('>')
	}
	w.pending, w.text = false, false
}

func (w *writer) newline() {
	if w.indent == "" || len(w.names) == 0 && !w.pending && w.out.Buffered() == 0 {
		return
	}
	w.out.WriteByte('\n')
	for range w.names {
		w.out.WriteString(w.indent)
	}
}

// attribute writes an attribute of the element that was begun last.
func (w *writer) attribute(name, value string) {
	w.out.WriteByte(' ')
	w.out.WriteString(name)
	w.out.WriteString(`="`)
	w.escape(value, true)
	w.out.WriteByte('"')
}

// optional writes an attribute unless it is empty.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.attribute(name, value)
	}
}

// flag writes a boolean attribute only if it is true.
func (w *writer) flag(name string, value bool) {
	if value {
		w.attribute(name, "true")
	}
}

func (w *writer) number(name string, value *int64) {
	if value != nil {
		w.attribute(name, strconv.FormatInt(*value, 10))
	}
}

// cost writes nanoseconds unless they are 0. It rounds to 1/1000 ns: smaller digits come from
// floating point arithmetic, not from a measurement.
func (w *writer) cost(name string, value float64) {
	if value != 0 {
		w.optional(name, Decimal(Rounded(value, 3)))
	}
}

// leaf writes an element that contains only text.
func (w *writer) leaf(name, text string) {
	w.begin(name)
	w.characters(text)
	w.end()
}

func (w *writer) characters(text string) {
	if text == "" {
		return
	}
	w.out.WriteByte('>')
	w.pending, w.text = false, true
	w.escape(text, false)
}

// escape writes text such that a reader gets it back unchanged, as far as XML can carry it. It
// writes references for characters that a reader would normalize: line ends, and in attributes
// all white space.
func (w *writer) escape(text string, attribute bool) {
	done := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		if instead := escaped(r, size, attribute); instead != "" {
			w.out.WriteString(text[done:i])
			w.out.WriteString(instead)
			done = i + size
		}
		i += size
	}
	w.out.WriteString(text[done:])
}

// escaped returns the replacement of a character, "" if it needs none.
func escaped(r rune, size int, attribute bool) string {
	switch {
	case r == '&':
		return "&amp;"
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '\r':
		return "&#13;"
	case attribute && r == '"':
		return "&quot;"
	case attribute && r == '\n':
		return "&#10;"
	case attribute && r == '\t':
		return "&#9;"
	case !isChar(r), r == utf8.RuneError && size == 1:
		return string(utf8.RuneError)
	}
	return ""
}
