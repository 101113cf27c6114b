package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mirador/omis"
)

// quoted scans a string in C notation.
func (s *scanner) quoted() {
	s.kind = constant
	for at := s.pos + 1; at < len(s.text); at++ {
		switch s.text[at] {
		case '"':
			s.at = at + 1
			s.value = omis.Value{Kind: omis.KindString, Str: s.text[s.pos+1 : at], Pos: s.pos}
			return
		case '\\':
			s.escaped(at)
			return
		case '\n':
			s.unclosed(at)
			return
		}
	}
	s.unclosed(len(s.text))
}

func (s *scanner) unclosed(at int) {
	s.fail(s.pos, "string is not closed")
	s.at, s.kind = at, broken
}

// escaped continues a string at its first backslash.
func (s *scanner) escaped(at int) {
	var b strings.Builder
	b.WriteString(s.text[s.pos+1 : at])
	for at < len(s.text) {
		switch c := s.text[at]; c {
		case '"':
			s.at = at + 1
			s.value = omis.Value{Kind: omis.KindString, Str: b.String(), Pos: s.pos}
			return
		case '\n':
			s.unclosed(at)
			return
		case '\\':
			at = s.escape(&b, at)
		default:
			b.WriteByte(c)
			at++
		}
	}
	s.unclosed(len(s.text))
}

var simpleEscapes = [256]byte{
	'n': '\n', 't': '\t', 'r': '\r', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v',
	'\\': '\\', '"': '"', '\'': '\'', '?': '?',
}

// escape appends the value of the escape sequence at an offset and returns the offset after
// it.
func (s *scanner) escape(b *strings.Builder, at int) int {
	if at+1 == len(s.text) {
		return at + 1
	}
	c := s.text[at+1]
	switch {
	case simpleEscapes[c] != 0:
		b.WriteByte(simpleEscapes[c])
		return at + 2
	case c >= '0' && c <= '7':
		return s.byteEscape(b, at, at+1, min(digitsEnd(s.text, at+1, 8), at+4), 8)
	case c == 'x':
		return s.byteEscape(b, at, at+2, digitsEnd(s.text, at+2, 16), 16)
	case c == 'u':
		return s.runeEscape(b, at, 4)
	case c == 'U':
		return s.runeEscape(b, at, 8)
	}
	s.fail(at, `unknown escape sequence "\%c" in a string`, c)
	return at + 2
}

func (s *scanner) byteEscape(b *strings.Builder, at, from, to, base int) int {
	n, err := strconv.ParseUint(s.text[from:to], base, 8)
	if err != nil {
		s.fail(at, "escape sequence %q is not a byte", s.text[at:to])
	}
	b.WriteByte(byte(n))
	return to
}

func (s *scanner) runeEscape(b *strings.Builder, at, digits int) int {
	to := min(digitsEnd(s.text, at+2, 16), at+2+digits)
	n, err := strconv.ParseUint(s.text[at+2:to], 16, 32)
	if err != nil || to != at+2+digits || !utf8.ValidRune(rune(n)) {
		s.fail(at, "escape sequence %q is not a character", s.text[at:to])
		return to
	}
	b.WriteRune(rune(n))
	return to
}

func digitsEnd(text string, at, base int) int {
	for at < len(text) && isDigitOf(text[at], base) {
		at++
	}
	return at
}

func isDigitOf(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '7':
		return true
	case base == 16:
		return c == '8' || c == '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}
