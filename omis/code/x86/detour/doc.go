// Package detour knows what it takes to lead threads away from program text by a
// jump that somebody writes over it, and back: which instructions the jump
// displaces, and how copies of them do elsewhere what they did in their place.
//
// Its functions are pure. Only omis/host, omis/code, omis/linux and omis/place may import it.
package detour
