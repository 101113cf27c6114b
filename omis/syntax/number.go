package syntax

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"mirador/omis"
)

// number scans an integer or a floating value in C notation, with a sign, or binary data,
// which begins with its length and "#".
func (s *scanner) number() {
	s.kind = constant
	start := s.pos
	at := start
	neg := false
	if c := s.text[at]; c == '-' || c == '+' {
		neg = c == '-'
		at++
	}
	if n, next, ok := shortDecimal(s.text, at); ok {
		s.at = next
		s.value = omis.Value{Kind: omis.KindInt, N: n, Neg: neg && n != 0, Pos: start}
		return
	}
	digits := at
	for at < len(s.text) && classOf[s.text[at]]&isDigit != 0 {
		at++
	}
	if at > digits && at < len(s.text) && s.text[at] == '#' {
		s.binary(digits, at)
		return
	}
	s.at = numberEnd(s.text, digits)
	word := s.text[digits:s.at]
	if isFloating(word) {
		s.floating(word, neg)
		return
	}
	s.integer(word, neg)
}

// shortDecimal reads the most common numbers: a few decimal digits.
func shortDecimal(text string, at int) (n uint64, next int, ok bool) {
	start := at
	for at < len(text) && at-start < 10 && classOf[text[at]]&isDigit != 0 {
		n = n*10 + uint64(text[at]-'0')
		at++
	}
	if at == start || text[start] == '0' && at-start > 1 {
		return 0, 0, false
	}
	if at < len(text) && (classOf[text[at]]&(isLetter|isDigit) != 0 || text[at] == '.' || text[at] == '#') {
		return 0, 0, false
	}
	return n, at, true
}

// numberEnd returns the end of the letters, digits, points and exponent signs of a number.
func numberEnd(text string, at int) int {
	hex := strings.HasPrefix(text[at:], "0x") || strings.HasPrefix(text[at:], "0X")
	for ; at < len(text); at++ {
		c := text[at]
		switch {
		case classOf[c]&(isLetter|isDigit) != 0, c == '.':
		case (c == '+' || c == '-') && at > 0 && isExponent(text[at-1], hex):
		default:
			return at
		}
	}
	return at
}

func isExponent(c byte, hex bool) bool {
	if hex {
		return c == 'p' || c == 'P'
	}
	return c == 'e' || c == 'E'
}

func isFloating(word string) bool {
	if strings.HasPrefix(word, "0x") || strings.HasPrefix(word, "0X") {
		return strings.ContainsAny(word, ".pP")
	}
	return strings.ContainsAny(word, ".eE")
}

func (s *scanner) integer(word string, neg bool) {
	digits := strings.TrimRight(word, "uUlL")
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	n, err := strconv.ParseUint(digits, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		s.fail(s.pos, "integer %s does not fit into 64 bits", word)
		s.kind = broken
	case err != nil || strings.Contains(digits, "_") || !isSuffix(word[len(word)-suffixLen(word):]):
		s.fail(s.pos, "malformed number %q", s.text[s.pos:s.at])
		s.kind = broken
	}
	s.value = omis.Value{Kind: omis.KindInt, N: n, Neg: neg && n != 0, Pos: s.pos}
}

func suffixLen(word string) int { return len(word) - len(strings.TrimRight(word, "uUlL")) }

// isSuffix reports whether C allows the suffix of an integer constant.
func isSuffix(suffix string) bool {
	switch strings.Replace(strings.ToLower(suffix), "u", "", 1) {
	case "", "l", "ll":
		return true
	}
	return false
}

func (s *scanner) floating(word string, neg bool) {
	digits := word
	hex := strings.HasPrefix(word, "0x") || strings.HasPrefix(word, "0X")
	if n := len(word); strings.ContainsRune("fFlL", rune(word[n-1])) && (!hex || strings.ContainsAny(word, "pP")) {
		digits = word[:n-1]
	}
	f, err := strconv.ParseFloat(digits, 64)
	// An overflow gives an infinite value, because the printer writes infinity as 1e999.
	if err != nil && !math.IsInf(f, 0) || strings.Contains(digits, "_") {
		s.fail(s.pos, "malformed number %q", s.text[s.pos:s.at])
		s.kind = broken
	}
	if neg {
		f = -f
	}
	s.value = omis.Value{Kind: omis.KindFloat, Float: f, Pos: s.pos}
}

// binary scans LEN#bytes; digits and hash are the offsets of the length and of "#".
func (s *scanner) binary(digits, hash int) {
	n, err := strconv.ParseUint(s.text[digits:hash], 10, 31)
	start := hash + 1
	switch {
	case digits != s.pos:
		s.fail(s.pos, "the length of binary data has no sign")
		s.at, s.kind = start, broken
	case err != nil || int(n) > len(s.text)-start:
		s.fail(s.pos, "binary data of %s bytes, but %d follow", s.text[digits:hash], len(s.text)-start)
		s.at, s.kind = len(s.text), broken
	default:
		s.at = start + int(n)
		s.value = omis.Value{Kind: omis.KindBinary, Str: s.text[start:s.at], Pos: s.pos}
	}
}
