package prototype

import (
	"fmt"
	"strings"
)

// Error is an error at a position in a prototype file.
type Error struct {
	Line, Column int
	Msg          string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg) }

// token is a word, a number, a punctuation character, or "..."; "" is the end.
type token struct {
	text string
	pos  int
}

func (t token) isName() bool   { return t.text != "" && isLetter(t.text[0]) }
func (t token) isNumber() bool { return t.text != "" && isDigit(t.text[0]) }

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// scan splits a text into tokens, without comments. Lines that begin with # count as
// comments too, so that the output of a preprocessor can be read.
func scan(text string) (tokens []token, err *Error) {
	for at := 0; at < len(text); {
		rest := text[at:]
		switch c := text[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
		case c == '#' || strings.HasPrefix(rest, "//"):
			at += lineLength(rest)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return nil, errorAt(text, at, "the comment does not end")
			}
			at += end + 4
		case strings.HasPrefix(rest, "..."):
			tokens = append(tokens, token{"...", at})
			at += 3
		case isLetter(c) || isDigit(c):
			n := 1
			for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
				n++
			}
			tokens = append(tokens, token{rest[:n], at})
			at += n
		case strings.IndexByte("(),;*[]", c) >= 0:
			tokens = append(tokens, token{rest[:1], at})
			at++
		default:
			return nil, errorAt(text, at, fmt.Sprintf("unexpected %q", c))
		}
	}
	return append(tokens, token{"", len(text)}), nil
}

func lineLength(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

func errorAt(text string, pos int, msg string) *Error {
	before := text[:pos]
	return &Error{
		Line: 1 + strings.Count(before, "\n"), Column: pos - strings.LastIndexByte(before, '\n'), Msg: msg,
	}
}
