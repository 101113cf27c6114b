// Package ptrace is the kernel's tracing interface, as thin as it can be: the
// requests this monitor makes, and a wait that can look without taking.
//
// Only omis/linux may import it. Every function must be called on the OS thread
// that attached the tracee: the kernel answers ESRCH to all others.
package ptrace
