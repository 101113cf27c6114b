//go:build linux

package proc

import (
	"bytes"
	"iter"
	"strconv"
)

// Pairs iterates over a file whose lines each contain a name and a value, separated by a
// colon as in status and io, or by a blank as in vmstat.
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

// Number parses the decimal number at the beginning of a value and returns 0 if there is
// none. A unit or another number may follow.
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
