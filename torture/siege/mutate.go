//go:build linux && amd64

package main

import (
	"math/rand/v2"
	"strconv"
)

// mutator makes texts that are almost correct. One goroutine uses it.
type mutator struct {
	*rand.Rand
	seeds   []string
	grammar *grammar // of half of the texts; nil: the seeds are all
	words   []string // replacements of words
}

// numbers are limits at which programs often fail.
var numbers = []string{
	"0", "-1", "1", "2", "7", "255", "256", "65535", "65536", "2147483647", "-2147483648", "4294967295", "4294967296",
	"9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "0x7fffffffffff",
	"0xffffffff81000000", "1e308", "1e-320", "NaN", "inf", "0x", "00000000000000000000001", "0.5",
}

// unchanged is the number of texts for each one that is not mutated, and so creates objects for the
// others to name.
const unchanged = 30

// next returns a seed, or a text that the grammar allows, with random changes. It leaves half of the texts of
// the grammar unchanged, because their values are random already.
func (m *mutator) next() string {
	text := m.seeds[m.IntN(len(m.seeds))]
	if m.grammar != nil && m.IntN(2) == 0 {
		if text = m.grammar.document(m.Rand); m.IntN(2) == 0 {
			return text
		}
	}
	if m.IntN(unchanged) == 0 {
		return text
	}
	for changes := 1 + m.IntN(5); changes > 0; changes = m.IntN(changes) {
		text = m.change(text)
	}
	const longest = 60 << 10
	return text[:min(len(text), longest)]
}

func (m *mutator) change(text string) string {
	switch m.IntN(10) {
	case 0, 1, 2: // replace a word by another one
		from, to := m.word(text)
		return text[:from] + m.words[m.IntN(len(m.words))] + text[to:]
	case 3, 4: // replace a word by a number
		from, to := m.word(text)
		return text[:from] + m.number() + text[to:]
	case 5: // insert a part of another text
		other := m.seeds[m.IntN(len(m.seeds))]
		from, to := m.part(other)
		at := m.IntN(len(text) + 1)
		return text[:at] + other[from:to] + text[at:]
	case 6: // repeat a part, perhaps many times
		from, to := m.part(text)
		for times := 1 << m.IntN(6); times > 0 && len(text) < 1<<14; times-- {
			text = text[:to] + text[from:to] + text[to:]
		}
		return text
	case 7: // delete a part
		from, to := m.part(text)
		return text[:from] + text[to:]
	}
	if text == "" {
		return text
	}
	bytes := []byte(text)
	bytes[m.IntN(len(bytes))] ^= 1 << m.IntN(8)
	return string(bytes)
}

func (m *mutator) number() string {
	if m.IntN(3) == 0 {
		return strconv.FormatInt(int64(m.Uint64()>>m.IntN(64)), 10)
	}
	return numbers[m.IntN(len(numbers))]
}

// part returns the bounds of a random part of a text.
func (m *mutator) part(text string) (from, to int) {
	from = m.IntN(len(text) + 1)
	return from, from + m.IntN(min(len(text)-from, 40)+1)
}

// word returns the bounds of a random word: letters, digits and the characters that join them.
func (m *mutator) word(text string) (from, to int) {
	inWord := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '*' || c == '?'
	}
	from = m.IntN(len(text) + 1)
	for from < len(text) && !inWord(text[from]) {
		from++
	}
	for to = from; to < len(text) && inWord(text[to]); to++ {
	}
	for from > 0 && inWord(text[from-1]) {
		from--
	}
	return from, to
}
