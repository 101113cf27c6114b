// Package sched reports when chosen threads get a processor, lose it, block and are
// unblocked (OMIS 8.1.2, 8.1.3: the scheduling events), by eBPF programs at the
// scheduler's tracepoints. It stops no thread.
//
// Only omis/linux may import it. An Observer may be used from any goroutine. Its own
// goroutine reads the kernel's events and calls the handler. While an Observer is open,
// the programs run at each context switch of the machine.
package sched
