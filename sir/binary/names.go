package binary

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// cloneSuffix matches the suffixes of functions that compilers derive from another function
// and that are called. Parts that are the target of jumps (.cold) are not functions.
var cloneSuffix = regexp.MustCompile(`(\.(constprop|isra|part|lto_priv|localalias|clone|llvm)(\.\d+)?)+$`)

// nested matches the symbol of a function inside another one in Fortran and GNU C. Go has names with
// more dots.
var nested = regexp.MustCompile(`^([^.]+)\.\d+$`)

// coldSuffix marks the unlikely part of a function, moved elsewhere.
var coldSuffix = regexp.MustCompile(`\.cold(\.\d+)?$`)

// Demangled names are limited to 2^maxNamePower bytes.
const maxNamePower = 11

// sourceName returns the function's name in the source: demangled, without the suffixes of
// clones.
func sourceName(symbol string) string {
	if strings.HasPrefix(symbol, "_Z") || strings.HasPrefix(symbol, "_R") {
		if name, err := demangle.ToString(symbol, demangle.NoClones, demangle.MaxLength(maxNamePower)); err == nil {
			return printable(name)
		}
	}
	if strings.IndexByte(symbol, '.') > 0 {
		symbol = nested.ReplaceAllString(symbol, "$1")
		symbol = cloneSuffix.ReplaceAllString(symbol, "")
	}
	return printable(symbol)
}

// printable makes a name safe for display and for XML: it escapes bytes that are not printable
// text.
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
