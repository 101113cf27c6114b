package omis

import "strings"

// Token names an observable object (OMIS 7.2.2). Tools must not interpret it, except for
// the class: the prefix before the last underscore, as in "p_12" and "pa_t_3".
type Token string

// Class is the class of a token, without the underscore that follows it.
type Class string

// Classes of the basic specification. Classes of extensions start with the extension's
// prefix: "pa_c", "pa_t".
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

// Undefined is the token of no object. OMIS 7.2.4: an event that cannot be attributed to
// a process has an undefined token as its $proc.
const Undefined Token = "u_0"

// Class returns the part before the last underscore, "" if there is none.
func (t Token) Class() Class {
	i := strings.LastIndexByte(string(t), '_')
	if i < 0 {
		return ""
	}
	return Class(t[:i])
}
