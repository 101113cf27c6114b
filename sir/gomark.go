package sir

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// A woven source in Go calls a function where a region begins and another one where it ends. Their names are
// the id of the weaving and the region, because the linker keeps the names of functions in stripped programs too.
const (
	goBegins = "mirador_begin_"
	goEnds   = "mirador_end_"
)

// GoMarks returns the names of the functions that mark a woven region in Go. The region is KIND:ID. Other characters
// than letters of ASCII and digits become hexadecimal numbers.
func GoMarks(weaving, region string) (begins, ends string) {
	var b strings.Builder
	b.WriteString(weaving)
	b.WriteByte('_')
	for i := range len(region) {
		if c := region[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return goBegins + b.String(), goEnds + b.String()
}

func isPlain(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// GoMark returns what a function in Go marks, by its symbol: what is "begin", "end", or "" if it is no such function.
func GoMark(symbol string) (what, weaving, region string) {
	name := symbol[strings.LastIndexByte(symbol, '.')+1:]
	what = "begin"
	rest, ok := strings.CutPrefix(name, goBegins)
	if !ok {
		what = "end"
		rest, ok = strings.CutPrefix(name, goEnds)
	}
	weaving, coded, found := strings.Cut(rest, "_")
	if region, valid := fromLetters(coded); ok && found && valid {
		return what, weaving, region
	}
	return "", "", ""
}

func fromLetters(coded string) (text string, ok bool) {
	var b []byte
	for i := 0; i < len(coded); i++ {
		if coded[i] != '_' {
			b = append(b, coded[i])
			continue
		}
		if i+2 >= len(coded) {
			return "", false
		}
		c, err := hex.DecodeString(coded[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b = append(b, c...)
		i += 2
	}
	return string(b), true
}
