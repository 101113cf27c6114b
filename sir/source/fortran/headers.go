package fortran

import (
	"strings"

	"mirador/sir"
)

// header is the first statement of a program unit.
type header struct {
	kind     sir.Kind // "" if it is none
	name     string
	function bool
	bound    string // the name that bind gives it in C
	pure     bool   // it calls pure procedures only
}

// headerOf reads the first statement of a program unit.
func headerOf(s *statement) header {
	text := s.text
	if _, ok := assignment(text); ok {
		return header{}
	}
	for _, h := range []struct {
		word string
		kind sir.Kind
	}{{"program", sir.MainProgram}, {"blockdata", sir.Module}, {"submodule", sir.Module}, {"module", sir.Module}} {
		rest, ok := strings.CutPrefix(text, h.word)
		if !ok {
			continue
		}
		if h.word == "blockdata" && (rest == "" || isName(rest)) {
			return header{kind: h.kind, name: text}
		}
		if h.word == "submodule" {
			parent, name, _ := strings.Cut(strings.TrimPrefix(rest, "("), ")")
			parent, _, _ = strings.Cut(parent, ":")
			if isName(name) && isName(parent) {
				return header{kind: h.kind, name: parent}
			}
			continue
		}
		if isName(rest) && !(h.word == "module" && strings.HasPrefix(rest, "procedure") && boundary(s, len("moduleprocedure"))) {
			return header{kind: h.kind, name: rest}
		}
	}
	return procedure(s)
}

// boundary reports whether a blank is before a byte of a statement.
func boundary(s *statement, at int) bool { return at < len(s.spaced) && s.spaced[at] }

// prefixes may precede the words function and subroutine.
var prefixes = []string{
	"pure", "elemental", "impure", "simple", "recursive", "non_recursive", "module", "integer", "real", "doubleprecision", "complex", "doublecomplex",
	"logical", "character", "type", "class", "byte", "attributes",
}

// procedure reads the first statement of a function or subroutine.
func procedure(s *statement) (h header) {
	text := s.text
	pure, impure := false, false
	defer func() { h.pure = pure && !impure }()
	for {
		if rest, ok := strings.CutPrefix(text, "subroutine"); ok {
			name, after := identifier(rest)
			if name != "" && (after == "" || after[0] == '(' || strings.HasPrefix(after, "bind(")) {
				name, after = withoutBind(name, after)
				return header{kind: sir.Subroutine, name: name, bound: bound(name, after, s)}
			}
		}
		if rest, ok := strings.CutPrefix(text, "function"); ok {
			if name, after := identifier(rest); name != "" && strings.HasPrefix(after, "(") {
				return header{kind: sir.Function, name: name, function: true, bound: bound(name, after, s)}
			}
		}
		if rest, ok := strings.CutPrefix(text, "moduleprocedure"); ok && isName(rest) && len(text) == len(s.text) {
			return header{kind: "procedure", name: rest}
		}
		rest := withoutPrefix(text)
		if rest == text {
			return header{}
		}
		for _, prefix := range []string{"pure", "elemental", "simple"} {
			pure = pure || strings.HasPrefix(text, prefix)
		}
		impure = impure || strings.HasPrefix(text, "impure")
		text = rest
	}
}

// withoutBind separates a name from bind(c), which may follow without parameters.
func withoutBind(name, after string) (string, string) {
	if n, ok := strings.CutSuffix(name, "bind"); ok && n != "" && strings.HasPrefix(after, "(c") {
		return n, "bind" + after
	}
	return name, after
}

// bound returns the name in C of a procedure with bind(c).
func bound(name, after string, s *statement) string {
	i := strings.Index(after, "bind(c")
	if i < 0 {
		return ""
	}
	if strings.HasPrefix(after[i:], "bind(c)") {
		return name
	}
	return "*" // the name is in a string of the source
}

// withoutPrefix removes a prefix and what describes a type.
func withoutPrefix(text string) string {
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(text, p)
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, "*") {
			rest = strings.TrimLeft(rest[1:], "0123456789")
		}
		if strings.HasPrefix(rest, "(") {
			end := closing(rest, 0)
			if end < 0 {
				return text
			}
			rest = rest[end+1:]
		}
		return rest
	}
	return text
}

// endsUnit reports whether a statement ends a program unit.
func endsUnit(text string) bool {
	rest, ok := strings.CutPrefix(text, "end")
	if !ok {
		return false
	}
	if rest == "" {
		return true
	}
	if _, isAssignment := assignment(text); isAssignment {
		return false
	}
	for _, word := range []string{"program", "subroutine", "function", "module", "submodule", "procedure", "blockdata"} {
		if after, ok := strings.CutPrefix(rest, word); ok && (after == "" || isName(after)) {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' || c == '$' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// identifier returns the name at the beginning of a text, and what follows.
func identifier(text string) (name, rest string) {
	i := 0
	for i < len(text) && (letter(text[i]) || i > 0 && digit(text[i])) {
		i++
	}
	return text[:i], text[i:]
}

func isName(text string) bool {
	name, rest := identifier(text)
	return name != "" && rest == ""
}

// closing returns where the parenthesis that opens at a place is closed, -1 if it is not.
func closing(text string, open int) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		case '\'', '"': // contents of strings are left out
			i++
		}
	}
	return -1
}

// assignment returns where the sign of an assignment is. A statement with such a sign and a comma
// behind it, both outside of parentheses, is none: it begins a loop or declares variables.
func assignment(text string) (at int, ok bool) {
	if text == "" || !letter(text[0]) {
		return 0, false
	}
	depth, at := 0, -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case depth != 0 && c != '\'' && c != '"':
		case c == '\'' || c == '"':
			i++
		case c == ',' || c == ':' && i+1 < len(text) && text[i+1] == ':':
			return 0, false
		case c == '=' && i+1 < len(text) && text[i+1] == '=':
			i++
		case c == '=' && at < 0 && i > 0 && !strings.ContainsRune("/<>", rune(text[i-1])):
			at = i
		}
	}
	return at, at >= 0
}
