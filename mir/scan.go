package mir

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	commentOpen, commentClose = "<!--", "-->"
	cdataOpen, cdataClose     = "<![CDATA[", "]]>"
	byteOrderMark             = "\uFEFF"
)

// Scan reads a document within limits and records all positions. It accepts XML 1.0 with
// namespaces in UTF-8 or ISO-8859-1. It refuses document type declarations and processing
// instructions: no MIR document needs them, and they make XML dangerous to parse. Documents
// that Scan accepts are safe to pass to libxml2.
func Scan(data []byte, limits Limits) (*Tree, error) {
	return new(scanner).scan(data, limits, "")
}

// scanner passes over the source once. Its methods set fault and return false if they fail.
type scanner struct {
	Tree   // what has been read so far
	limits Limits
	at     int // offset of the next byte to read
	mark   cursor
	open   int32 // index of the innermost open element, -1 outside the root
	depth  int
	scopes scopes
	fault  *Error
}

// scanners holds scanners for callers that do not keep the tree. Most documents are small, and
// allocating a scanner for each would cost more than its text.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// scan reads a document. The scanner owns the tree.
func (s *scanner) scan(data []byte, limits Limits, charset string) (*Tree, error) {
	if len(data) > limits.Bytes {
		return nil, refuse(TooLarge, Position{}, "the document has %d bytes; at most %d are accepted", len(data), limits.Bytes)
	}
	source := decoded(data, charset)
	*s = scanner{
		Tree:   Tree{source: source, elements: s.elements, attributes: s.attributes},
		limits: limits,
		open:   -1,
		mark:   cursor{source: source, line: 1, column: 1},
		scopes: s.scopes,
	}
	if !s.characters() || !s.prolog() || !s.content() {
		return nil, s.fault
	}
	return &s.Tree, nil
}

// recycle clears the scanner and returns it to the pool with its memory.
func (s *scanner) recycle() {
	const most = 1024
	if cap(s.elements) > most || cap(s.attributes) > most || cap(s.scopes) > most {
		return
	}
	clear(s.elements)
	clear(s.attributes)
	clear(s.scopes)
	*s = scanner{Tree: Tree{elements: s.elements[:0], attributes: s.attributes[:0]}, scopes: s.scopes[:0]}
	scanners.Put(s)
}

// fail sets the fault: the document is malformed at offset.
func (s *scanner) fail(offset int, format string, args ...any) bool {
	return s.stop(Malformed, offset, format, args...)
}

func (s *scanner) stop(kind Kind, offset int, format string, args ...any) bool {
	place := cursor{source: s.source, wide: true, line: 1, column: 1}
	s.fault = refuse(kind, place.position(offset), format, args...)
	return false
}

// characters checks that XML can carry all characters of the document.
func (s *scanner) characters() bool {
	text := s.source
	if strings.HasPrefix(text, "\xFE\xFF") || strings.HasPrefix(text, "\xFF\xFE") {
		return s.fail(0, "the document is in UTF-16; send it in UTF-8")
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c-' ' < utf8.RuneSelf-' ' || isSpace(c) {
			i++
			continue
		}
		s.mark.wide = true
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return s.fail(i, "the byte 0x%02X is not UTF-8; send the document in UTF-8", c)
		}
		if !isChar(r) {
			return s.fail(i, "the character U+%04X is not allowed in XML", r)
		}
		i += size
	}
	return true
}

// prolog reads a byte order mark and the XML declaration.
func (s *scanner) prolog() bool {
	if strings.HasPrefix(s.source, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	if rest := s.source[s.at:]; strings.HasPrefix(rest, "<?xml") && len(rest) > 5 && isSpace(rest[5]) {
		return s.declaration()
	}
	return true
}

// content reads the document to its end.
func (s *scanner) content() bool {
	for s.at < len(s.source) {
		if s.source[s.at] != '<' {
			if !s.characterData() {
				return false
			}
			continue
		}
		if !s.markup() {
			return false
		}
	}
	if s.open >= 0 {
		e := &s.elements[s.open]
		return s.fail(len(s.source), "the document ends inside <%s> of line %d, column %d; close it with </%[1]s>",
			e.qualified, e.pos.Line, e.pos.Column)
	}
	if len(s.elements) == 0 {
		return s.fail(s.at, "there is no element; a MIR document was expected")
	}
	return true
}

// markup reads a construct that begins with '<'.
func (s *scanner) markup() bool {
	if s.at+1 == len(s.source) {
		return s.fail(s.at, "the document ends after <")
	}
	switch s.source[s.at+1] {
	case '/':
		return s.endTag()
	case '!':
		return s.declared()
	case '?':
		return s.fail(s.at, "processing instructions are not accepted; remove <?…?>")
	}
	return s.startTag()
}

// declared reads a construct that begins with "<!".
func (s *scanner) declared() bool {
	rest := s.source[s.at:]
	switch {
	case strings.HasPrefix(rest, commentOpen):
		return s.comment()
	case strings.HasPrefix(rest, cdataOpen):
		return s.cdata()
	case strings.HasPrefix(rest, "<!DOCTYPE"):
		return s.fail(s.at, "document type declarations are not accepted; remove <!DOCTYPE …>")
	case strings.HasPrefix(rest, "<!ENTITY"):
		return s.fail(s.at, "entity declarations are not accepted; remove <!ENTITY …>")
	}
	return s.fail(s.at, "after <! only a comment <!--…--> is allowed here")
}

// cursor converts offsets to positions. For ascending offsets it passes over the source only
// once.
type cursor struct {
	source string
	wide   bool // the source has characters of more than a byte
	line   int
	start  int // offset of the line's first byte
	next   int // offset of the next line; len+1 in the last line, 0 initially
	column int // column of the offset seen
	seen   int
}

func (c *cursor) lineAfter(start int) int {
	if length := strings.IndexByte(c.source[start:], '\n'); length >= 0 {
		return start + length + 1
	}
	return len(c.source) + 1
}

func (c *cursor) position(offset int) Position {
	if c.next == 0 {
		c.next = c.lineAfter(0)
	}
	for offset >= c.next {
		c.line, c.start = c.line+1, c.next
		c.seen, c.column = c.start, 1
		c.next = c.lineAfter(c.start)
	}
	if c.wide {
		c.column += utf8.RuneCountInString(c.source[c.seen:offset])
	} else {
		c.column = offset - c.start + 1
	}
	c.seen = offset
	return Position{Line: c.line, Column: c.column}
}
