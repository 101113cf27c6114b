package mir

import "strings"

// badTagName explains what follows '<' instead of a name.
func (s *scanner) badTagName(start int) bool {
	if start+1 < len(s.source) && isSpace(s.source[start+1]) {
		return s.fail(start, "the name of an element must follow < without a blank (in text write &lt;)")
	}
	return s.fail(start, "the name of an element must follow < (in text write &lt;)")
}

// badAttributeName explains what a start tag contains instead of an attribute. The examples in
// MIR's own text have two of these mistakes: <thread="1045"/>, and a start tag that is not
// closed.
func (s *scanner) badAttributeName(start int, e *node) bool {
	rest := s.source[start:]
	switch {
	case rest[0] == '=':
		return s.fail(start, "the attribute's name is missing before =; write %s", spelled(e.qualified, rest[1:]))
	case rest[0] == '<':
		return s.fail(start, "the start tag of <%s> is not closed; write > or /> before this <", e.qualified)
	case rest[0] == '/':
		return s.fail(start, "> is missing after / in <%s>", e.qualified)
	case strings.HasPrefix(rest, "“"), strings.HasPrefix(rest, "”"), rest[0] == '"', rest[0] == '\'':
		return s.fail(start, `a value without a name in <%s>; attributes are written name="value"`, e.qualified)
	}
	return s.fail(start, `an attribute was expected in <%s>, written name="value"`, e.qualified)
}

// spelled shows how to write an element whose only attribute lacks its name. It takes the
// value from the text after the equals sign, if it can parse it.
func spelled(element, value string) string {
	attribute := "id"
	switch element {
	case "metric":
		attribute = "name"
	case "codeRegion":
		attribute = "from"
	case "action":
		attribute = "type"
	case "aggregate":
		attribute = "function"
	case "resource":
		attribute = "in"
	}
	const longest = 40
	shown := "…"
	value = strings.TrimLeft(value, " \t\r\n")
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		inside, _, ok := strings.Cut(value[1:], value[:1])
		if ok && len(inside) <= longest && !strings.ContainsAny(inside, "<\n") {
			shown = inside
		}
	}
	return "<" + element + " " + attribute + `="` + shown + `"/>`
}

// quoteless shortens a name from outside for a message.
func quoteless(name string) string {
	short := Quote(name)
	return short[1 : len(short)-1]
}
