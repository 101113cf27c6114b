package mir

import "strings"

// declaration reads <?xml version="1.0" encoding="UTF-8"?>.
func (s *scanner) declaration() bool {
	start := s.at
	length := strings.Index(s.source[start:], "?>")
	if length < 0 {
		return s.fail(start, "the XML declaration is not closed; write ?> after it")
	}
	text := s.source[start+len("<?xml") : start+length]
	s.at = start + length + len("?>")
	rank := 0
	for text = strings.TrimLeft(text, " \t\r\n"); text != ""; text = strings.TrimLeft(text, " \t\r\n") {
		name, value, rest, ok := pseudoAttribute(text)
		order := declarationOrder(name)
		if !ok || order <= rank || rank == 0 && order != 1 {
			return s.fail(start, `the XML declaration is not well-formed; write <?xml version="1.0" encoding="UTF-8"?>`)
		}
		if !s.declares(start, name, value) {
			return false
		}
		rank, text = order, rest
	}
	if rank == 0 {
		return s.fail(start, `the XML declaration has no version; write <?xml version="1.0"?>`)
	}
	return true
}

// declarationOrder returns the position of an attribute in the XML declaration, 0 for an
// unknown name.
func declarationOrder(name string) int {
	switch name {
	case "version":
		return 1
	case "encoding":
		return 2
	case "standalone":
		return 3
	}
	return 0
}

func (s *scanner) declares(start int, name, value string) bool {
	switch name {
	case "version":
		if value != "1.0" {
			return s.fail(start, "XML %s is not accepted, only 1.0", Quote(value))
		}
	case "encoding":
		if !KnownCharset(value) {
			return s.fail(start, "the encoding %s is not accepted; send the document in UTF-8 or ISO-8859-1", Quote(value))
		}
	case "standalone":
		if value != "yes" && value != "no" {
			return s.fail(start, "standalone is %s; it can be yes or no", Quote(value))
		}
	}
	return true
}

// pseudoAttribute splits a leading name="value" off the text of an XML declaration.
func pseudoAttribute(text string) (name, value, rest string, ok bool) {
	name, rest, ok = strings.Cut(text, "=")
	name, rest = strings.TrimRight(name, " \t\r\n"), strings.TrimLeft(rest, " \t\r\n")
	if !ok || rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", "", "", false
	}
	value, rest, ok = strings.Cut(rest[1:], rest[:1])
	return name, value, rest, ok && (rest == "" || isSpace(rest[0]))
}

// comment reads <!-- … -->.
func (s *scanner) comment() bool {
	inside := s.source[s.at+len(commentOpen):]
	length := strings.Index(inside, "--")
	if length < 0 {
		return s.fail(s.at, "the comment is not closed; write --> after it")
	}
	if !strings.HasPrefix(inside[length:], commentClose) {
		return s.fail(s.at+len(commentOpen)+length, "-- is not allowed inside a comment")
	}
	s.at += len(commentOpen) + length + len(commentClose)
	return true
}

// cdata reads <![CDATA[ … ]]>.
func (s *scanner) cdata() bool {
	if s.open < 0 {
		return s.fail(s.at, "text is not allowed outside the root element")
	}
	length := strings.Index(s.source[s.at:], cdataClose)
	if length < 0 {
		return s.fail(s.at, "the CDATA section is not closed; write ]]> after it")
	}
	s.elements[s.open].text = true
	s.at += length + len(cdataClose)
	return true
}

// characterData reads to the next '<'.
func (s *scanner) characterData() bool {
	for ; s.at < len(s.source); s.at++ {
		c := s.source[s.at]
		if isSpace(c) {
			continue
		}
		if c == '<' {
			return true
		}
		if s.open < 0 {
			return s.outside(s.at)
		}
		s.elements[s.open].text = true
		switch c {
		case '&':
			if _, size := reference(s.source[s.at:]); size == 0 {
				return s.badReference(s.at)
			}
		case ']':
			if strings.HasPrefix(s.source[s.at:], cdataClose) {
				return s.fail(s.at, "]]> is not allowed in text; write ]]&gt;")
			}
		}
	}
	return true
}

func (s *scanner) outside(offset int) bool {
	if len(s.elements) == 0 {
		return s.fail(offset, "the document does not begin with an element; a MIR document was expected")
	}
	return s.fail(offset, "text is not allowed after the root element")
}

// badReference explains a reference that cannot be decoded, or a '&' that begins none.
func (s *scanner) badReference(offset int) bool {
	rest := s.source[offset:]
	name := rest[1:nameEnd(rest, 1)]
	switch {
	case strings.HasPrefix(rest, "&#"):
		return s.fail(offset, "the character reference does not name a character that XML can carry")
	case name != "" && strings.HasPrefix(rest[1+len(name):], ";"):
		return s.fail(offset, "the entity &%s; is not known: only &lt; &gt; &amp; &quot; and &apos; are", name)
	}
	return s.fail(offset, "& alone is not allowed; write &amp;")
}
