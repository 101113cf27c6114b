package mir

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	commentOpen, commentClose = "<!--", "-->"
	cdataOpen, cdataClose     = "<![CDATA[", "]]>"
	byteOrderMark             = "\uFEFF"
)

// Scan reads a document within bounds and keeps the place of everything. It
// takes XML 1.0 with namespaces in UTF-8 or ISO-8859-1, without document type declarations and
// processing instructions, which no MIR document needs and which are what makes
// XML dangerous to read. What it lets through, libxml2 may see.
func Scan(data []byte, limits Limits) (*Tree, error) {
	s := new(scanner)
	s.elements, s.attributes = roomFor(data, limits)
	return s.scan(data, limits, "")
}

// roomFor has upper bounds of a well-formed document, so that slices seldom
// grow; they are capped since a stranger chose them.
func roomFor(data []byte, limits Limits) ([]node, []Attribute) {
	const most = 1024
	tags := bytes.Count(data, []byte("<")) - bytes.Count(data, []byte("</"))
	attributes := bytes.Count(data, []byte("="))
	return make([]node, 0, min(tags, limits.Elements, most)), make([]Attribute, 0, min(attributes, most))
}

// scanner walks over the source once. Its methods answer false after they have
// set fault.
type scanner struct {
	Tree   // what has been read
	limits Limits
	at     int // offset of what is read next
	mark   cursor
	open   int32 // the element we are in, -1 outside the root
	depth  int
	scopes scopes
	fault  *Error
}

// scanners are used again by those who do not keep the tree: most documents are
// small, and would otherwise be made of more garbage than text.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// scan reads a document. The tree is the scanner's own.
func (s *scanner) scan(data []byte, limits Limits, charset string) (*Tree, error) {
	if len(data) > limits.Bytes {
		return nil, refuse(TooLarge, Position{}, "the document has %d bytes; at most %d are taken", len(data), limits.Bytes)
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

// recycle gives the scanner back, with its memory and without what it read.
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

// fail notes what is wrong at an offset.
func (s *scanner) fail(offset int, format string, args ...any) bool {
	return s.stop(Malformed, offset, format, args...)
}

func (s *scanner) stop(kind Kind, offset int, format string, args ...any) bool {
	place := cursor{source: s.source, wide: true, line: 1, column: 1}
	s.fault = refuse(kind, place.position(offset), format, args...)
	return false
}

// characters checks that the document is text that XML can carry.
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
			return s.fail(i, "the character U+%04X cannot stand in XML", r)
		}
		i += size
	}
	return true
}

// prolog reads what may stand before the root element.
func (s *scanner) prolog() bool {
	if strings.HasPrefix(s.source, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	if rest := s.source[s.at:]; strings.HasPrefix(rest, "<?xml") && len(rest) > 5 && isSpace(rest[5]) {
		return s.declaration()
	}
	return true
}

// content reads to the end of the document.
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

// markup reads what begins with '<'.
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
		return s.fail(s.at, "processing instructions are not taken; remove <?…?>")
	}
	return s.startTag()
}

// declared reads what begins with "<!".
func (s *scanner) declared() bool {
	rest := s.source[s.at:]
	switch {
	case strings.HasPrefix(rest, commentOpen):
		return s.comment()
	case strings.HasPrefix(rest, cdataOpen):
		return s.cdata()
	case strings.HasPrefix(rest, "<!DOCTYPE"):
		return s.fail(s.at, "document type declarations are not taken; remove <!DOCTYPE …>")
	case strings.HasPrefix(rest, "<!ENTITY"):
		return s.fail(s.at, "entity declarations are not taken; remove <!ENTITY …>")
	}
	return s.fail(s.at, "after <! only a comment <!--…--> can stand here")
}

// cursor turns offsets into positions. Asked in ascending order it passes over
// the source once.
type cursor struct {
	source string
	wide   bool // there are characters of more than a byte
	line   int
	start  int // where the line begins
	next   int // where the next line begins, len+1 in the last one, 0 at first
	column int // of the offset seen
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
