package omis

// Observing costs the observed, and what it costs can be measured: on a program that
// does nothing but pass the places that are probed. What was measured so is subtracted
// from the intervals that are reported, and told to whoever asks what a probe costs.

// Cost is what an occurrence of an event takes of the thread, in nanoseconds. It
// depends on the placement and on the kind of place (Verdict.Kind).
type Cost struct {
	// Count is of an occurrence that is only counted, or of one that is not timed where
	// only some are (Verdict.OneIn), or of one that appends a record; Time of one that opens
	// or closes an interval.
	Count, Time float64
	// Before is what has passed of it when the time is taken, After what is to come. An
	// interval contains the After of the place where it begins and the Before of the
	// place where it ends. Only such sums mean something: where within an occurrence
	// the time is taken cannot be seen from outside.
	Before, After float64
}

// Bias is what of the cost of probes an interval contains from a place like this to
// one like the other. Where processors do one thing before another is done, that may be
// less than nothing.
func (c Cost) Bias(end Cost) float64 { return c.After + end.Before }

// Costs is the capability to tell what occurrences cost on this machine.
type Costs interface {
	// Cost is what has been measured for a kind of place of a placement; false: nothing
	// has, or not yet.
	Cost(placement, kind string) (Cost, bool)
	// Calibrate measures a placement, unless that was done or tried before. It takes
	// some tenths of a second, and returns when Cost knows.
	Calibrate(placement string)
}
