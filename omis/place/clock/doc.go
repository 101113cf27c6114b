// Package clock finds out how code in a program can read the time without a system call.
//
// Judge looks at the clock of the kernel and chooses one of three kinds: the time stamp
// counter alone, the counter with the hypervisor's page that converts it to nanoseconds, or
// the vDSO's function clock_gettime. Where none can be used the error names the condition
// that is missing. All that Judge reads is a field of Machine, so that a test can try every
// kind of machine on any machine.
//
// Packages of placements, cli and bench may import it. Its functions may be called from any
// goroutine.
package clock
