// Package doctor finds out what of Mirador works on this machine, by trying it:
// it traces a process that it starts, writes to its text, loads a BPF program,
// opens a performance counter. What does not work it explains, with what to do.
//
// Only cli imports it. The checks run one after another on the caller's
// goroutine; the one that traces keeps it on its OS thread, since a tracee
// belongs to the thread that attached it.
package doctor
