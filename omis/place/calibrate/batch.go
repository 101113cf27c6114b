//go:build linux

package calibrate

import (
	"math"
	"slices"

	"mirador/omis"
)

// Batches take less than a tenth of a millisecond, so that many are not interrupted also where others
// keep the machine busy. There are rounds of them until enough have told the same, of all
// that is measured, or patience is at its end.
const (
	fewRounds  = 40
	mostRounds = 160
	alike      = 10  // batches
	batch      = 7e4 // nanoseconds
	warmUp     = 4   // calls, in which is made what is made once: rows, copies of code
	fewest     = 4
	most       = 2000
	howLong    = 6 // rounds of work, some 50 ns
)

// run measures the trials in turns with the function that is not probed. One that is timed
// by the clock that waits has batches of its own for what is measured, with calls that are
// apart by chance. Otherwise that would be another thing to measure: what overlaps what
// stands before it.
func (d *process) run(list []*trial, clock omis.Clock) error {
	for _, t := range list {
		if _, err := d.call(t.function, warmUp, howLong); err != nil {
			return err
		}
		ns, err := d.call(t.function, warmUp, howLong)
		if err != nil {
			return err
		}
		t.calls = min(most, max(fewest, int(batch/ns)))
	}
	unsettled := func(t *trial) bool { return !t.settled() }
	var bare []float64
	for round := 1; round <= mostRounds; round++ {
		ns, err := d.call(0, most, howLong)
		if err != nil {
			return err
		}
		bare = append(bare, ns)
		for _, t := range list {
			if err := t.turn(d, clock); err != nil {
				return err
			}
		}
		if round >= fewRounds && settled(bare, 0) && !slices.ContainsFunc(list, unsettled) {
			break
		}
	}
	for _, t := range list {
		t.bare = floor(bare, 0)
	}
	return nil
}

// turn makes one batch with probes, or two.
func (t *trial) turn(d *process, clock omis.Clock) error {
	if _, _, err := t.read(); err != nil {
		return err
	}
	ns, err := d.call(t.function, t.calls, howLong)
	if err != nil {
		return err
	}
	t.probed = append(t.probed, ns)
	if t.timed() && clock == omis.ClockOrdered {
		if _, _, err := t.read(); err != nil {
			return err
		}
		if _, err := d.callApart(t.function, t.calls, howLong, apart); err != nil {
			return err
		}
	}
	mean, ok, err := t.read()
	if ok {
		t.measured = append(t.measured, mean)
	}
	return err
}

// near is how far batches that tell the same may be from the least, and grain how far the
// clock may go on at a time, in nanoseconds: of many processors 10.
const (
	near  = 1.01
	grain = 10
)

// blur is how far, nearly always, the mean of a batch is from the least of all by the steps
// of the clock: four standard deviations.
func (t *trial) blur() float64 {
	return 4 * grain / 2 / math.Sqrt(float64(max(t.intervals, 1)))
}

// lowest are the batches that nothing has disturbed, as far as it can be told: whatever
// else a machine does makes one longer. They are sorted.
func lowest(batches []float64, blur float64) []float64 {
	list := slices.Sorted(slices.Values(batches))
	if len(list) == 0 {
		return nil
	}
	limit := max(near*list[0], list[0]+blur)
	if end := slices.IndexFunc(list, func(ns float64) bool { return ns > limit }); end >= 0 {
		list = list[:end]
	}
	return list
}

// floor is what batches tell that nothing has disturbed. It is not the least: what is
// measured in steps of the clock is too short as often as it is too long.
func floor(batches []float64, blur float64) float64 {
	list := lowest(batches, blur)
	return list[len(list)/2]
}

// settled tells that enough batches tell the same.
func settled(batches []float64, blur float64) bool { return len(lowest(batches, blur)) >= alike }

func (t *trial) settled() bool {
	return t.minor || settled(t.probed, 0) && (!t.timed() || settled(t.measured, t.blur()))
}

// added is what probing adds to a call, inside what of that the intervals contain.
func (t *trial) added() float64  { return floor(t.probed, 0) - t.bare }
func (t *trial) inside() float64 { return floor(t.measured, t.blur()) - t.bare }
