// Package resident is the code and data that the monitor keeps in a target with
// breakpoints, so that its threads can pass breakpoints without the monitor: a SIGTRAP
// handler, a table that maps each breakpoint to an out-of-line copy of the displaced
// instruction, and the copies.
//
// A living tracer sees every SIGTRAP first and sets the thread to the copy itself. The
// handler does this after the tracer's death, and in an untraced forked child.
//
// Only omis/linux and its subpackages may import it. Its functions have no side effects:
// they compute the bytes to write and parse those that were read.
package resident
