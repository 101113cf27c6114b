package omis

// GoCode is what is known of code of Go at an address. A goroutine may go on on another
// thread, and its stack may be moved: an interval is one of the goroutine, whose descriptor
// stays, as does the distance of the stack pointer from the upper end of the stack.
type GoCode struct {
	In bool // the code is of Go
	// G is where a thread has the address of the descriptor of its goroutine: 8 bytes at this
	// distance from the address in its register fs. The descriptor has the address of
	// the upper end of the stack at StackEnd.
	G, StackEnd int32
	// Unknown says why G is not known; nil: it is.
	Unknown error
}
