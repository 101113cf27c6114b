package binary

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// cloneSuffix is what compilers append to a function they made from another one
// and that is still called. Parts that are jumped to (.cold) are no functions.
var cloneSuffix = regexp.MustCompile(`(\.(constprop|isra|part|lto_priv|localalias|clone|llvm)(\.\d+)?)+$`)

// coldSuffix marks the unlikely part of a function, moved elsewhere.
var coldSuffix = regexp.MustCompile(`\.cold(\.\d+)?$`)

// Demangled names are bounded: 2^maxNamePower bytes each.
const maxNamePower = 11

// sourceName is what the source calls the function: demangled, without the
// suffixes of clones.
func sourceName(symbol string) string {
	if strings.HasPrefix(symbol, "_Z") || strings.HasPrefix(symbol, "_R") {
		if name, err := demangle.ToString(symbol, demangle.NoClones, demangle.MaxLength(maxNamePower)); err == nil {
			return printable(name)
		}
	}
	if strings.IndexByte(symbol, '.') > 0 {
		symbol = cloneSuffix.ReplaceAllString(symbol, "")
	}
	return printable(symbol)
}

// printable makes a name safe to show and to put into XML: bytes that are no
// text become escapes.
func printable(name string) string {
	if plain(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			q := strconv.QuoteToASCII(name[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

func plain(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
