package binary

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// clones are the suffixes of functions that compilers derive from another function and that are called; a number may
// follow. Parts that are the target of jumps (.cold) are not functions.
var clones = map[string]bool{"constprop": true, "isra": true, "part": true, "lto_priv": true, "localalias": true, "clone": true, "llvm": true}

// withoutClones removes the suffixes of clones.
func withoutClones(symbol string) string {
	for {
		rest, last := cutLast(symbol)
		if isNumber(last) {
			rest, last = cutLast(rest)
		}
		if !clones[last] {
			return symbol
		}
		symbol = rest
	}
}

// cutLast divides a symbol at its last dot.
func cutLast(symbol string) (before, last string) {
	i := strings.LastIndexByte(symbol, '.')
	return symbol[:max(i, 0)], symbol[i+1:]
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// withoutNumber removes the number of a function inside another one in Fortran and GNU C. Go has names with more dots.
func withoutNumber(symbol string) string {
	if name, number := cutLast(symbol); name != "" && isNumber(number) && strings.IndexByte(name, '.') < 0 {
		return name
	}
	return symbol
}

// coldSuffix marks the unlikely part of a function, moved elsewhere.
var coldSuffix = regexp.MustCompile(`\.cold(\.\d+)?$`)

// isCold reports whether a symbol is that of the unlikely part of a function.
func isCold(symbol string) bool {
	return strings.Contains(symbol, ".cold") && coldSuffix.MatchString(symbol)
}

// withoutCold returns the symbol of the whole function if a symbol is that of a part of it.
func withoutCold(symbol string) string {
	if !isCold(symbol) {
		return symbol
	}
	return coldSuffix.ReplaceAllString(symbol, "")
}

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
		symbol = withoutClones(withoutNumber(symbol))
	}
	return printable(symbol)
}

// sourceName is the function sourceName, which takes long for the names of C++.
func (im *Image) sourceName(symbol string) string {
	if known, ok := im.names.Load(symbol); ok {
		return known.(string)
	}
	name := sourceName(symbol)
	if len(name) > 0 && name != symbol {
		im.names.Store(symbol, name)
	}
	return name
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
