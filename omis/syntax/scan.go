package syntax

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mirador/omis"
)

// kind is the kind of an element of the text. A punctuation character is its own kind.
type kind uint8

const (
	end kind = iota
	ident
	param
	constant // an integer, a floating value, a string or binary data, in scanner.value
	broken   // an error was reported
)

func (k kind) String() string {
	switch k {
	case end:
		return "the end"
	case ident:
		return "a name"
	case param:
		return "an event context parameter"
	case constant:
		return "a value"
	}
	return fmt.Sprintf("%q", rune(k))
}

// Properties of a byte.
const (
	isBlank = 1 << iota
	isLetter
	isDigit
	isPunct
)

var classOf = [256]uint8{
	' ': isBlank, '\t': isBlank, '\n': isBlank, '\r': isBlank, '\v': isBlank, '\f': isBlank,
	'(': isPunct, ')': isPunct, '[': isPunct, ']': isPunct, '{': isPunct, '}': isPunct,
	':': isPunct, ';': isPunct, ',': isPunct,
	'_': isLetter,
	'0': isDigit, '1': isDigit, '2': isDigit, '3': isDigit, '4': isDigit,
	'5': isDigit, '6': isDigit, '7': isDigit, '8': isDigit, '9': isDigit,
	'a': isLetter, 'b': isLetter, 'c': isLetter, 'd': isLetter, 'e': isLetter, 'f': isLetter, 'g': isLetter,
	'h': isLetter, 'i': isLetter, 'j': isLetter, 'k': isLetter, 'l': isLetter, 'm': isLetter, 'n': isLetter,
	'o': isLetter, 'p': isLetter, 'q': isLetter, 'r': isLetter, 's': isLetter, 't': isLetter, 'u': isLetter,
	'v': isLetter, 'w': isLetter, 'x': isLetter, 'y': isLetter, 'z': isLetter,
	'A': isLetter, 'B': isLetter, 'C': isLetter, 'D': isLetter, 'E': isLetter, 'F': isLetter, 'G': isLetter,
	'H': isLetter, 'I': isLetter, 'J': isLetter, 'K': isLetter, 'L': isLetter, 'M': isLetter, 'N': isLetter,
	'O': isLetter, 'P': isLetter, 'Q': isLetter, 'R': isLetter, 'S': isLetter, 'T': isLetter, 'U': isLetter,
	'V': isLetter, 'W': isLetter, 'X': isLetter, 'Y': isLetter, 'Z': isLetter,
}

// scanner splits a text into elements. After next, kind, pos and, depending on kind, word or
// value describe the current element. Words are slices of the text; only strings with escapes
// are copied.
type scanner struct {
	text  string
	at    int // offset of the next element
	kind  kind
	pos   int
	word  string
	value omis.Value
	errs  Errors
}

func (s *scanner) fail(pos int, format string, args ...any) {
	if len(s.errs) < MaxErrors {
		s.errs = append(s.errs, Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
	}
}

func (s *scanner) next() {
	at := s.at
	for at < len(s.text) && classOf[s.text[at]]&isBlank != 0 {
		at++
	}
	s.pos = at
	if at == len(s.text) {
		s.at, s.kind = at, end
		return
	}
	c := s.text[at]
	switch {
	case classOf[c]&isLetter != 0:
		s.at = s.wordEnd(at)
		s.kind, s.word = ident, s.text[at:s.at]
	case classOf[c]&isPunct != 0:
		s.at, s.kind = at+1, kind(c)
	case classOf[c]&isDigit != 0 || c == '-' || c == '+' || c == '.':
		s.number()
	case c == '"':
		s.quoted()
	case c == '$':
		s.contextParam()
	default:
		r, n := utf8.DecodeRuneInString(s.text[at:])
		s.at, s.kind = at+n, broken
		s.fail(at, "unexpected character %q%s", r, hintFor(r))
	}
}

func hintFor(r rune) string {
	if strings.ContainsRune("“”„‘’«»'`", r) {
		return `: write strings in plain quotes (")`
	}
	return ""
}

// wordEnd returns the end of the letters and digits that begin at an offset.
func (s *scanner) wordEnd(at int) int {
	for at < len(s.text) && classOf[s.text[at]]&(isLetter|isDigit) != 0 {
		at++
	}
	return at
}

func (s *scanner) contextParam() {
	s.at = s.wordEnd(s.pos + 1)
	s.kind, s.word = param, s.text[s.pos+1:s.at]
	if s.word == "" || classOf[s.word[0]]&isDigit != 0 {
		s.kind = broken
		s.fail(s.pos, `"$" without the name of an event context parameter`)
	}
}
