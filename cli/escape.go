package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Users choose the names and arguments of their programs. Control characters in these could change
// earlier output on a terminal, or the terminal itself.

// plain replaces characters that control a terminal by their escapes in Go's notation: control
// characters except line feed and tab, bytes that are not UTF-8, and characters that change the
// direction of text.
func plain(text string) string {
	if strings.IndexFunc(text, isObeyed) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case isObeyed(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, r)
		case isObeyed(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}

// plainCell is plain for a cell of a table: it escapes line feeds and tabs as well.
func plainCell(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(plain(text))
}

func isObeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// plainWriter applies plain to everything that is written to a terminal. A character may be written
// in several parts.
type plainWriter struct {
	w    io.Writer
	part []byte // the beginning of a character whose end was not written yet
}

func (p *plainWriter) Write(b []byte) (int, error) {
	text := append(p.part, b...)
	whole := len(text)
	for whole > 0 && len(text)-whole < utf8.UTFMax-1 && !utf8.RuneStart(text[whole-1]) {
		whole--
	}
	if whole > 0 && !utf8.FullRune(text[whole-1:]) {
		whole--
	} else {
		whole = len(text)
	}
	p.part = bytes.Clone(text[whole:])
	_, err := io.WriteString(p.w, plain(string(text[:whole])))
	return len(b), err
}

// forPeople returns a plainWriter if w is a terminal, and w otherwise.
func forPeople(w io.Writer) io.Writer {
	if isTerminal(w) {
		return &plainWriter{w: w}
	}
	return w
}
