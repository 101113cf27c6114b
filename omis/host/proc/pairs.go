//go:build linux

package proc

import (
	"bytes"
	"iter"
	"strconv"
)

// Pairs are the lines of a file that gives a name and a value in each: with a
// colon between them as status and io do, or a blank as vmstat does.
func Pairs(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for len(text) > 0 {
			line, rest, _ := bytes.Cut(text, []byte{'\n'})
			text = rest
			if i := separator(line); i > 0 && !yield(line[:i], bytes.TrimSpace(line[i+1:])) {
				return
			}
		}
	}
}

func separator(line []byte) int {
	for i, c := range line {
		if c == ':' || c == ' ' {
			return i
		}
	}
	return -1
}

// Number is the decimal number that a value begins with, 0 without one; a
// unit may follow, or another number.
func Number(value []byte) (n int64) {
	for _, c := range value {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

func hexadecimal(value []byte) uint64 {
	n, _ := strconv.ParseUint(string(value), 16, 64)
	return n
}

func four(value []byte) (ids [4]int) {
	for i := range ids {
		ids[i] = int(Number(value))
		_, value, _ = bytes.Cut(value, []byte{'\t'})
	}
	return ids
}
