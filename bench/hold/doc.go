// Package hold measures what it costs to hold a thread until the monitor has acted, and
// other operations that tools wait for: stopping processes, asking about them, and a
// request's path through the engine. Each figure is compared with a reference measured in
// the same run, in alternating rounds: C programs that do the minimum (bench/reference),
// gdb, Delve, prometheus/procfs. A missing reference is listed with the reason.
//
// Only the program in bench imports it. Every step has a time limit, after which its
// target is killed; no process stays behind.
package hold
