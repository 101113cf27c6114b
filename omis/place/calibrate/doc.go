// Package calibrate measures what probes cost on this machine. It places real probes in a
// dummy, a small process that only executes probed code. The difference between batches
// of calls with and without probes, run in turns, is the time that a hit adds to a
// thread, and the part of it that an interval contains.
//
// Package cli passes it the node and the placements. The dummy is a program of its own,
// which the package writes to a temporary directory. A file stores the results; they are
// measured again on another machine.
//
// The methods of Costs may be called from any goroutine. A calibration runs on the
// goroutine that needs it first; others wait for it.
package calibrate
