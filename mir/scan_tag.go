package mir

import (
	"strings"
	"unicode/utf8"
)

// startTag reads <name attribute="value" …> or <name …/>.
func (s *scanner) startTag() bool {
	start := s.at
	if s.open < 0 && len(s.elements) > 0 {
		return s.fail(start, "a second root element; a document has one")
	}
	name, ok := s.name(start + 1)
	if !ok {
		return s.badTagName(start)
	}
	if !s.fits(start, name) {
		return false
	}
	index := int32(len(s.elements))
	first := int32(len(s.attributes))
	s.elements = append(s.elements, node{
		name: name, qualified: name, pos: s.mark.position(start), parent: s.open, first: first,
	})
	s.at = start + 1 + len(name)
	closed, ok := s.attributesOf(index)
	if !ok || !s.resolve(index, start) {
		return false
	}
	s.elements[index].body = int32(s.at)
	s.open = index
	s.depth++
	if closed {
		s.leave(s.at)
	}
	return true
}

// fits checks the limits for a new element.
func (s *scanner) fits(start int, name string) bool {
	switch {
	case len(name) > s.limits.NameLength:
		return s.stop(TooLarge, start, "an element's name has %d bytes; at most %d are accepted", len(name), s.limits.NameLength)
	case s.depth >= s.limits.Depth:
		return s.stop(TooLarge, start, "elements are nested more than %d deep", s.limits.Depth)
	case len(s.elements) >= s.limits.Elements:
		return s.stop(TooLarge, start, "there are more than %d elements", s.limits.Elements)
	}
	return true
}

// attributesOf reads the rest of a start tag; closed reports whether it ends with "/>".
func (s *scanner) attributesOf(index int32) (closed, ok bool) {
	for {
		before := s.at
		s.skipSpace()
		switch rest := s.source[s.at:]; {
		case rest == "":
			return false, s.fail(s.at, "the document ends inside the start tag of <%s>", s.elements[index].qualified)
		case rest[0] == '>':
			s.at++
			s.elements[index].last = int32(len(s.attributes))
			return false, true
		case strings.HasPrefix(rest, "/>"):
			s.at += 2
			s.elements[index].last = int32(len(s.attributes))
			return true, true
		}
		if !s.attribute(index, s.at > before) {
			return false, false
		}
	}
}

// attribute reads name="value".
func (s *scanner) attribute(index int32, separated bool) bool {
	e := &s.elements[index]
	start := s.at
	name, ok := s.name(start)
	if !ok {
		return s.badAttributeName(start, e)
	}
	if !separated {
		return s.fail(start, "a blank is missing before the attribute %s", name)
	}
	if !s.fitsAttribute(start, name, e) {
		return false
	}
	for _, other := range s.attributes[e.first:] {
		if other.Name == name {
			return s.fail(start, "the attribute %s appears twice in <%s>", name, e.qualified)
		}
	}
	s.at = start + len(name)
	value, ok := s.value(name, e)
	if !ok {
		return false
	}
	s.attributes = append(s.attributes, Attribute{Name: name, Value: value, Pos: s.mark.position(start)})
	return true
}

func (s *scanner) fitsAttribute(start int, name string, e *node) bool {
	switch {
	case len(name) > s.limits.NameLength:
		return s.stop(TooLarge, start, "an attribute's name has %d bytes; at most %d are accepted", len(name), s.limits.NameLength)
	case len(s.attributes)-int(e.first) >= s.limits.AttributesPerElement:
		return s.stop(TooLarge, start, "<%s> has more than %d attributes", e.qualified, s.limits.AttributesPerElement)
	}
	return true
}

// value reads ="value" after an attribute's name.
func (s *scanner) value(name string, e *node) (string, bool) {
	s.skipSpace()
	if s.at == len(s.source) || s.source[s.at] != '=' {
		return "", s.fail(s.at, `the attribute %s of <%s> has no value; write %[1]s="…"`, name, e.qualified)
	}
	s.at++
	s.skipSpace()
	if s.at == len(s.source) || s.source[s.at] != '"' && s.source[s.at] != '\'' {
		return "", s.fail(s.at, `the value of %s is not in quotes; write %[1]s="…"`, name)
	}
	return s.quoted(name, s.source[s.at])
}

// quoted reads a value to its closing quote; s.at is at the opening quote.
func (s *scanner) quoted(name string, quote byte) (string, bool) {
	start := s.at + 1
	plain := true // no decoding needed
	for i := start; i < len(s.source); i++ {
		switch c := s.source[i]; c {
		case quote:
			s.at = i + 1
			if plain {
				return s.source[start:i], true
			}
			return decodeAttribute(s.source[start:i]), true
		case '<':
			return "", s.fail(i, "< is not allowed in the value of %s; write &lt; (or is a quote missing?)", name)
		case '&':
			if _, size := reference(s.source[i:]); size == 0 {
				return "", s.badReference(i)
			}
			plain = false
		case '\n', '\t', '\r':
			plain = false
		}
	}
	return "", s.fail(s.at, "the value of %s is not closed by %c", name, quote)
}

// endTag reads </name>.
func (s *scanner) endTag() bool {
	start := s.at
	name, ok := s.name(start + 2)
	if !ok {
		return s.fail(start, "the name of an element must follow </")
	}
	if s.open < 0 {
		return s.fail(start, "</%s> closes nothing", quoteless(name))
	}
	if e := &s.elements[s.open]; e.qualified != name {
		return s.fail(start, "</%s> does not close <%s> of line %d, column %d; write </%[2]s> first, or <%[2]s …/> there",
			quoteless(name), e.qualified, e.pos.Line, e.pos.Column)
	}
	s.at = start + 2 + len(name)
	s.skipSpace()
	if s.at == len(s.source) || s.source[s.at] != '>' {
		return s.fail(s.at, "the end tag </%s is not closed; write >", name)
	}
	s.at++
	s.leave(start)
	return true
}

// leave closes the innermost open element, whose content ends at an offset.
func (s *scanner) leave(behind int) {
	e := &s.elements[s.open]
	e.behind = int32(behind)
	e.end = int32(len(s.elements))
	s.scopes.leave(s.depth)
	s.open = e.parent
	s.depth--
}

func (s *scanner) skipSpace() {
	for s.at < len(s.source) && isSpace(s.source[s.at]) {
		s.at++
	}
}

// name reads a qualified name at an offset: a name, or two names separated by a colon.
func (s *scanner) name(offset int) (string, bool) {
	end := nameEnd(s.source, offset)
	if end == offset {
		return "", false
	}
	if end < len(s.source) && s.source[end] == ':' {
		local := nameEnd(s.source, end+1)
		if local == end+1 || local < len(s.source) && s.source[local] == ':' {
			return "", false
		}
		end = local
	}
	return s.source[offset:end], true
}

// nameEnd returns the end of the name without a colon that begins at offset, or offset if
// there is none.
func nameEnd(text string, offset int) int {
	for i := offset; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if !isNameByte(c) || i == offset && !isNameStart(rune(c)) {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isNameRune(r) || i == offset && !isNameStart(r) {
			return i
		}
		i += size
	}
	return len(text)
}
