// Package hold measures what it costs to hold a thread until the monitor has
// acted, and what else tools wait for: stopping processes, asking about them,
// the way of a request through the engine. Each figure stands beside that of a
// reference, measured in the same run, turn by turn: programs in C that do the
// least that can be done (bench/reference), gdb, Delve, prometheus/procfs. A
// reference that cannot be had is named, with the reason.
//
// Only the program in bench imports it. Every step has a time limit, after which
// its target is killed; nothing is left running.
package hold
