// Package probe measures what a probe costs that counts or times a function, in nanoseconds
// added to a call: placed in the kernel and by trap, beside bare eBPF programs at the
// same uprobes, and beside bpftrace where it is installed. Contenders take turns on one
// running program, and a turn without any goes before each: what else the machine has
// to do changes little from one to the next.
//
// Only the program in bench imports it. Every step has a time limit.
package probe
