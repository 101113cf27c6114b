// Package clock finds out how code in a program can read the time without a system call.
//
// Judge looks at the kernel's clock and chooses one of three kinds: the time stamp
// counter, the counter with the hypervisor's page that converts it to nanoseconds, or the
// vDSO's function clock_gettime. If none is usable, its error names the missing
// condition. All inputs of Judge are fields of Machine, so that a test can imitate any
// machine.
//
// Packages of placements, cli and bench may import it. Its functions may be called from
// any goroutine.
package clock
