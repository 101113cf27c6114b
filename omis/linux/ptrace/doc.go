// Package ptrace contains the kernel's tracing requests that the monitor uses, and a wait
// that can inspect a status without consuming it.
//
// Only omis/linux may import it. Call every function on the OS thread that attached the
// tracee: for other threads the kernel returns ESRCH.
package ptrace
