// Package syntax reads sources in C, C++ and Java as words and signs, and finds the text of regions among them. The texts
// may be any bytes.
package syntax

import (
	"bytes"
	"slices"
	"strings"

	"mirador/sir/weave/woven"
)

// Kind is the kind of a token of C or C++.
type Kind byte

const (
	Word Kind = iota + 1
	Number
	Quoted
	Sign
	Directive // of the preprocessor, with all its lines
)

// Token is a token of C or C++. Comments are none.
type Token struct {
	Kind Kind
	// Dead is set in branches of conditionals that the structure of the source does not contain: all but the first
	// one that is not "#if 0".
	Dead       bool
	Start, End int32 // a source has less than 2 GB
}

// lexer finds the tokens of a text, which may be any bytes.
type lexer struct {
	text   []byte
	at     int
	fresh  bool // no token is before on the line
	blocks bool // strings of Java may have lines: """
	tokens []Token
	open   []conditional
}

// conditional is an #if whose #endif was not seen yet.
type conditional struct{ dead, taken, outer bool }

// MostTokens limits the tokens of a source, because they take more memory than the source.
const MostTokens = 4_000_000

func tokensOf(text []byte, java bool) []Token {
	l := &lexer{text: text, at: MarkSize(text), fresh: true, blocks: java}
	for l.at < len(text) && len(l.tokens) <= MostTokens {
		l.next()
	}
	return l.tokens
}

func (l *lexer) has(prefix string) bool { return bytes.HasPrefix(l.text[l.at:], []byte(prefix)) }

func (l *lexer) next() {
	c := l.text[l.at]
	switch {
	case c == '\n':
		l.fresh = true
		l.at++
	case c <= ' ' || c == '\\':
		l.at++
	case l.has("//"):
		l.at = l.lineEnd()
	case l.has("/*"):
		l.skipTo("*/", 2)
	case c == '#' && l.fresh:
		l.directive()
	case woven.IsLetter(c):
		start := l.at
		l.run(woven.IsLetterOrDigit)
		if (l.peek('"') || l.peek('\'')) && isPrefix(string(l.text[start:l.at])) {
			l.quote(start)
		} else {
			l.add(Word, start)
		}
	case woven.IsDigit(c) || c == '.' && l.at+1 < len(l.text) && woven.IsDigit(l.text[l.at+1]):
		l.number()
	case l.blocks && l.has(`"""`):
		l.block()
	case c == '"' || c == '\'':
		l.quote(l.at)
	default:
		start := l.at
		l.at++
		if l.at < len(l.text) {
			switch string(l.text[start : l.at+1]) {
			case "::", "->", "&&":
				l.at++
			}
		}
		l.add(Sign, start)
	}
}

// block reads a string between signs of three quotes.
func (l *lexer) block() {
	start := l.at
	for l.at += 3; l.at < len(l.text) && !l.has(`"""`); l.at++ {
		if l.text[l.at] == '\\' {
			l.at++
		}
	}
	l.at = min(l.at+3, len(l.text))
	l.add(Quoted, start)
}

func (l *lexer) add(k Kind, start int) {
	dead := len(l.open) > 0 && l.open[len(l.open)-1].dead
	l.tokens = append(l.tokens, Token{k, dead, int32(start), int32(l.at)})
	l.fresh = false
}

func (l *lexer) peek(c byte) bool { return l.at < len(l.text) && l.text[l.at] == c }

func (l *lexer) run(is func(byte) bool) {
	for l.at < len(l.text) && is(l.text[l.at]) {
		l.at++
	}
}

// skipTo goes behind the next occurrence of a text, or to the end.
func (l *lexer) skipTo(end string, from int) {
	l.at = min(l.at+from, len(l.text))
	if i := bytes.Index(l.text[l.at:], []byte(end)); i >= 0 {
		l.at += i + len(end)
	} else {
		l.at = len(l.text)
	}
}

// lineEnd returns the end of the line, which a backslash continues.
func (l *lexer) lineEnd() int {
	for at := l.at; ; at++ {
		i := bytes.IndexByte(l.text[at:], '\n')
		if i < 0 {
			return len(l.text)
		}
		if at += i; !bytes.HasSuffix(bytes.TrimSuffix(l.text[l.at:at], []byte("\r")), []byte(`\`)) {
			return at
		}
	}
}

// number reads a number of the preprocessor, with digits that apostrophes separate.
func (l *lexer) number() {
	start := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		next := l.at+1 < len(l.text) && woven.IsLetterOrDigit(l.text[l.at+1])
		exponent := (c == '+' || c == '-') && strings.IndexByte("eEpP", l.text[l.at-1]) >= 0
		if !woven.IsLetterOrDigit(c) && c != '.' && !(c == '\'' && next) && !(l.at > start && exponent) {
			break
		}
		l.at++
	}
	l.add(Number, start)
}

// quote reads a string or character, whose prefix begins at start.
func (l *lexer) quote(start int) {
	if prefix := l.text[start:l.at]; bytes.HasSuffix(prefix, []byte("R")) && l.peek('"') {
		delimiter, _, _ := bytes.Cut(l.text[l.at+1:], []byte("("))
		l.skipTo(")"+string(delimiter[:min(len(delimiter), 16)])+`"`, 1)
		l.add(Quoted, start)
		return
	}
	end := l.text[l.at]
	for l.at++; l.at < len(l.text) && l.text[l.at] != end && l.text[l.at] != '\n'; l.at++ {
		if l.text[l.at] == '\\' {
			l.at++
		}
	}
	l.at = min(l.at+1, len(l.text))
	l.add(Quoted, start)
}

// directive reads a directive, and whether what follows is compiled. A comment may continue it on other lines.
func (l *lexer) directive() {
	start := l.at
	for {
		end := l.lineEnd()
		i := bytes.Index(l.text[l.at:end], []byte("/*"))
		if i < 0 {
			l.at = end
			break
		}
		l.at += i
		l.skipTo("*/", 2)
	}
	fields := strings.Fields(strings.TrimPrefix(string(l.text[start:l.at]), "#"))
	l.add(Directive, start)
	l.fresh = true
	if len(fields) == 0 {
		return
	}
	l.decide(fields)
}

// decide follows the conditionals.
func (l *lexer) decide(fields []string) {
	var last *conditional
	if len(l.open) > 0 {
		last = &l.open[len(l.open)-1]
	}
	switch name := fields[0]; {
	case strings.HasPrefix(name, "if"):
		none := len(fields) == 2 && fields[1] == "0"
		outer := last != nil && last.dead
		l.open = append(l.open, conditional{outer || none, !none, outer})
	case last == nil:
	case strings.HasPrefix(name, "el"):
		last.dead = last.outer || last.taken
		last.taken = true
	case name == "endif":
		l.open = l.open[:len(l.open)-1]
	}
}

// MarkSize returns the size of the mark of the order of bytes at the beginning of a text.
func MarkSize(text []byte) int {
	const mark = "\uFEFF"
	if bytes.HasPrefix(text, []byte(mark)) {
		return len(mark)
	}
	return 0
}

// isPrefix reports whether a word may be before a string or character.
func isPrefix(s string) bool {
	return slices.Contains([]string{"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"}, s)
}
