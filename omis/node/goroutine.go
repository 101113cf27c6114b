package node

import (
	"context"

	"mirador/omis"
)

// GoCode describes the code at an address of a Go program. A goroutine can change its
// thread, and the runtime can move its stack. So an interval belongs to a goroutine,
// identified by the address of its descriptor; and the distance of the stack pointer from
// the upper end of the stack identifies the call.
type GoCode struct {
	In bool // the compiler of Go made the code
	// G is the distance, from the address in a thread's register fs, of the 8 bytes that
	// contain the address of its goroutine's descriptor. StackEnd is the offset in the
	// descriptor of the address of the stack's upper end.
	G, StackEnd int32
	// Marked reports that the code is in a function that marks where a woven region begins or ends. Its first
	// argument, in rax, is an address in the frame of the function that contains the region. That address
	// identifies the execution, because a deferred function may end the region at another stack pointer.
	Marked bool
	// Unknown is the reason why G is not known, nil if it is.
	Unknown error
}

// GoroutineLister lists the goroutines of Go programs.
type GoroutineLister interface {
	// Goroutines returns the goroutines of a process, with up to depth frames each (0: none).
	// The list is empty for a program that is not in Go.
	Goroutines(ctx context.Context, p omis.ProcID, depth int) ([]GoroutineInfo, error)
}

// GoroutineInfo describes a goroutine of a Go program at one moment.
type GoroutineInfo struct {
	ID     uint64
	State  string // as the runtime calls it: runnable, running, syscall, waiting, …
	Reason string // why it waits, "" if it does not wait or that is not known
	TID    int    // the thread that runs it, 0 if none does
	Frames []Frame
}
