package program

import (
	"mirador/omis"
)

// NoGoroutineCPU returns the error for a request for the CPU time of a Go function: Linux
// accounts CPU time to threads, and a goroutine may change its thread in the middle of
// the function.
func NoGoroutineCPU() error {
	return omis.Errorf(omis.UnsupportedService, "the CPU time of a function in Go cannot be measured: the kernel counts the CPU time of threads, and a goroutine may change its thread in the middle of a function; ask for the elapsed time (WC_TIME), or for the CPU time of the process")
}

// TimingChecker reports where a node cannot time intervals, so that the engine refuses
// such requests, with the reason, when they are enabled.
type TimingChecker interface {
	// CanTime returns the reason why no interval of a process can begin or end at an
	// address by a clock, nil if it can.
	CanTime(p omis.ProcID, addr uint64, clock Clock) error
}
