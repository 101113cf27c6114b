// Package doctor finds out what works on this machine, by trying it: it traces a process that it
// starts, writes to the process's code, loads a BPF program, opens a performance counter. For each
// failure it gives the reason and advice.
//
// Only cli imports it. The checks run one after another on the caller's goroutine. A check that
// traces stays on its OS thread, since a tracee belongs to the thread that attached it.
package doctor
