package woven

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// InAssembly returns a text as a string of C that is a string of the assembler: other characters than those of
// names are octal numbers of both.
func InAssembly(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; IsLetterOrDigit(c) && c < 0x80 && c != '$' || strings.IndexByte("/:.~@-+*", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\\%03o`, c)
		}
	}
	return b.String()
}

// What a marker marks.
const (
	Begins byte = 'b'
	Ends   byte = 'e'
)

// MarkerName returns the name of the procedure in which a region begins or ends. It depends on nothing but the
// region, and has no underscore, after which compilers of Fortran add another one.
func MarkerName(what byte, weaving, id string) string {
	sum := sha256.Sum256([]byte(weaving + ":" + id))
	return fmt.Sprintf("mirador%c%x", what, sum[:8])
}

// IsLetter reports whether a byte may begin a name. Bytes of other characters than those of ASCII may.
func IsLetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}

// IsDigit reports whether a byte is a digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetterOrDigit reports whether a byte may be in a name.
func IsLetterOrDigit(c byte) bool { return IsLetter(c) || IsDigit(c) }
