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

// NoGoroutineCPU is the error of a request for the CPU time of a function in Go: threads
// have CPU times, and a goroutine may change its thread in the middle of the function.
func NoGoroutineCPU() error {
	return Errorf(UnsupportedService, "the CPU time of a function in Go cannot be told: the kernel has CPU times of threads, and a goroutine may change its thread in the middle of a function; ask for the time that passes (WC_TIME), or for the CPU time of the process")
}

// TimingChecker tells where a node cannot have intervals begin or end, so that requests are
// refused when they are enabled, with the reason, before anything is measured wrongly.
type TimingChecker interface {
	// CanTime says why no interval of a process can begin or end at an address by a clock;
	// nil: it can.
	CanTime(p ProcID, addr uint64, clock Clock) error
}
