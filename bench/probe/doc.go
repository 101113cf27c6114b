// Package probe measures what probes cost that count and time functions and system calls,
// in nanoseconds added to a call, and what they report. It compares the placements
// inline, kernel and trap with bare eBPF programs and with other tools (package peers).
//
// A probed function and its twin, which is not probed, alternate in one process, in
// batches of a millisecond; contenders alternate too, each with a process of its own. So
// other load on the machine affects all compared figures alike.
//
// Only the program in bench imports it. Every step has a time limit.
package probe
