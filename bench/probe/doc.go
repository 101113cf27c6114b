// Package probe measures what probes cost that count and time functions and system
// calls, in nanoseconds added to a call, and what they report: placed inline, in the
// kernel and by trap, beside bare eBPF programs and beside other tools (package peers).
//
// A function that is probed and its twin, which is not, take turns in one process, in
// batches of a millisecond; contenders take turns too, each with a process of its own.
// So whatever else the machine has to do changes little between what is compared.
//
// Only the program in bench imports it. Every step has a time limit.
package probe
