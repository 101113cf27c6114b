package omis

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
