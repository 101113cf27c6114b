// Package resident is what stands in a target while breakpoints do, so that the
// target needs nobody to pass them: a SIGTRAP handler, a table that leads from
// each breakpoint to an out-of-line copy of the instruction it displaced, and
// the copies themselves.
//
// As long as a tracer lives it sees every SIGTRAP first and sends the thread to
// the copy itself. When it is dead, or in a forked child nobody traces, the
// handler does so.
//
// Only omis/linux and its subpackages may import it. Its functions are pure:
// they compute the bytes to be written and parse those that were read.
package resident
