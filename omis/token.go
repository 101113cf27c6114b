package omis

import "strings"

// Token names an observable object (OMIS 7.2.2). A token is opaque to tools;
// the only structure it has is the class, a prefix that ends with the
// underscore before the token's own part: "p_12", "pa_t_3".
type Token string

// Class is the class of a token, without the closing underscore.
type Class string

// The classes of the basic specification. Extensions add their own, which
// start with the extension's prefix: "pa_c", "pa_t".
const (
	ClassNode      Class = "n"
	ClassProcess   Class = "p"
	ClassThread    Class = "t"
	ClassQueue     Class = "q"
	ClassMessage   Class = "m"
	ClassUserEvent Class = "e"
	ClassCSR       Class = "c"
	ClassUndefined Class = "u"
)

// Undefined is the token of no object (OMIS 7.2.4: an event that cannot be
// attributed to a process has an undefined token as its $proc).
const Undefined Token = "u_0"

// Class returns what stands before the last underscore, "" if there is none.
func (t Token) Class() Class {
	i := strings.LastIndexByte(string(t), '_')
	if i < 0 {
		return ""
	}
	return Class(t[:i])
}
