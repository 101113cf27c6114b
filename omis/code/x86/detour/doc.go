// Package detour decides which instructions are displaced by a jump written over program
// text, and relocates copies of them that have the same effect elsewhere and lead back.
//
// Its functions have no side effects. Only omis/host, omis/code, omis/linux and
// omis/place may import it.
package detour
