// Package sched tells when chosen threads get a processor, lose it, block and
// are unblocked (OMIS 8.1.2, 8.1.3: the scheduling events), from eBPF programs
// at the scheduler's tracepoints. No thread is stopped for it.
//
// Only omis/linux may import it. An Observer may be used from any goroutine; one
// goroutine of its own reads the kernel's events and calls the handler. The
// programs run at each switch of the machine as long as an Observer is open.
package sched
