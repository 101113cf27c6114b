package program

// The monitor measures what its probes cost, on a dummy process that only executes probed
// code. It subtracts this cost from the intervals it reports, and shows it to users who
// ask what a probe costs.

// Cost is the time in nanoseconds that one occurrence of an event takes from its thread.
// It depends on the placement and on the kind of place (Verdict.Kind).
type Cost struct {
	// Count applies to an occurrence that is counted, not timed because of sampling
	// (Verdict.OneIn), or appended as a record; Time applies to an occurrence that opens
	// or closes an interval.
	Count, Time float64
	// Before is the part of Time before the clock is read, After the part after it. An
	// interval contains After of the place where it begins and Before of the place where
	// it ends. Only such sums are meaningful: the moment of the clock read within one
	// occurrence cannot be observed from outside.
	Before, After float64
	// Rough reports that the machine was too busy to measure the cost well.
	Rough bool `json:",omitempty"`
}

// Bias returns the part of the probes' cost that an interval from c's place to end's
// place contains. It can be negative, because processors overlap instructions.
func (c Cost) Bias(end Cost) float64 { return c.After + end.Before }

// Costs is the capability to measure the cost of an occurrence on this machine.
type Costs interface {
	// Cost returns the measured cost at a kind of place of a placement; ok is false if
	// there is no measurement yet.
	Cost(placement, kind string) (c Cost, ok bool)
	// Calibrate measures a placement, unless an earlier call did or tried to. It takes
	// some tenths of a second; when it returns, Cost has the result.
	Calibrate(placement string)
	// Want asks for the measurement of a placement, too, but may return before its end: an
	// answer must not wait for a measurement that is under way. Until the end, Cost has no
	// result.
	Want(placement string)
}
