// Package calibrate finds out what probes cost on this machine, by placing real ones: on
// a dummy, a small process that does nothing but pass the places where they stand. What
// a hit adds to the thread, and what of that an interval contains, is the difference
// between batches with probes and batches without; they take turns.
//
// cli joins it to the node, and starts the dummy, which is the same program again. What
// was measured is kept in a file, and measured anew where the machine is another.
//
// The methods of Costs may be called from any goroutine. A calibration runs on the
// goroutine of whoever needs it first; others wait for it.
package calibrate
