//go:build linux

package calibrate

import (
	"math"
	"slices"

	"mirador/omis/program"
)

// A batch takes less than a tenth of a millisecond, so that many batches are not
// interrupted even on a busy machine. Rounds of batches continue until enough batches of
// every trial agree, or up to mostRounds. After that, a trial is rough unless enough of its
// batches nearly agree.
const (
	fewRounds  = 40
	mostRounds = 160
	alike      = 10  // number of batches that must agree
	batch      = 7e4 // nanoseconds of a batch
	warmUp     = 4   // calls that create what is created only once: rows, copies of code
	fewest     = 4
	most       = 2000
	howLong    = 6 // rounds of work in a call, about 50 ns

	// beyond is the rounds of work in a call that the fast clock times, about 500 ns. A
	// processor executes up to 500 instructions ahead of the oldest incomplete one, so it
	// reads the fast clock too early. In a call of this length or more it reads the clock
	// equally early at the beginning and at the end, so that the interval is right. In a
	// call of howLong rounds it does not: the interval is 25 ns shorter than the call.
	beyond = 64
)

// roundsTimed returns the rounds of work in the calls whose intervals a clock measures.
func roundsTimed(clock program.Clock) int {
	if clock == program.ClockFast {
		return beyond
	}
	return howLong
}

// caller calls functions of a dummy a number of times, as process does.
type caller interface {
	call(function, calls, work int) (ns float64, err error)
	callApart(function, calls, work, apart int) (ns float64, err error)
}

// run measures the trials in turns with calls of the function without probes. A timed
// trial has extra batches for the intervals, with random pauses between calls: otherwise
// the overlap of a call with the one before would change the intervals. rough reports that
// the machine was too busy for one of the trials that are not minor.
func run(d caller, list []*trial, clock program.Clock) (rough bool, err error) {
	for _, t := range list {
		if _, err := d.call(t.function, warmUp, howLong); err != nil {
			return false, err
		}
		ns, err := d.call(t.function, warmUp, howLong)
		if err != nil {
			return false, err
		}
		t.calls = min(most, max(fewest, int(batch/ns)))
	}
	unsettled := func(t *trial) bool { return !t.settled() }
	var bare, bareTimed []float64
	for round, quiet := 1, false; round <= mostRounds && !quiet; round++ {
		ns, err := d.call(0, most, howLong)
		if err != nil {
			return false, err
		}
		bare = append(bare, ns)
		if ns, err = d.call(0, most*howLong/roundsTimed(clock), roundsTimed(clock)); err != nil {
			return false, err
		}
		bareTimed = append(bareTimed, ns)
		for _, t := range list {
			if err := t.turn(d, clock); err != nil {
				return false, err
			}
		}
		quiet = round >= fewRounds && settled(bare, 0) && settled(bareTimed, 0) && !slices.ContainsFunc(list, unsettled)
	}
	for _, t := range list {
		t.bare, t.bareTimed = floor(bare, 0), floor(bareTimed, 0)
		rough = rough || !t.minor && t.rough(bare, bareTimed)
	}
	return rough, nil
}

// Batches nearly agree if they differ by at most this part of the cost that they determine,
// or by at most few nanoseconds, which matter to no user.
const (
	nearly = 0.1
	few    = 2
)

// rough reports whether too few batches agree for the trial's cost.
func (t *trial) rough(bare, bareTimed []float64) bool {
	tolerance := max(nearly*t.added(), few)
	return !settled(t.probed, tolerance) || !settled(bare, tolerance) ||
		t.timed() && !(settled(t.measured, max(tolerance, t.blur())) && settled(bareTimed, tolerance))
}

// turn runs one batch of a trial, or two.
func (t *trial) turn(d caller, clock program.Clock) error {
	if _, _, err := t.read(); err != nil {
		return err
	}
	ns, err := d.call(t.function, t.calls, howLong)
	if err != nil {
		return err
	}
	t.probed = append(t.probed, ns)
	if t.timed() {
		if _, _, err := t.read(); err != nil {
			return err
		}
		if _, err := d.callApart(t.function, max(fewest, t.calls*howLong/roundsTimed(clock)), roundsTimed(clock), apart); err != nil {
			return err
		}
	}
	mean, ok, err := t.read()
	if ok {
		t.measured = append(t.measured, mean)
	}
	return err
}

// near is the greatest ratio of a batch to the least one at which the two agree. grain is the
// step of the clock in nanoseconds: 10 on many processors.
const (
	near  = 1.01
	grain = 10
)

// blur returns the error of a batch's mean that the steps of the clock cause: four
// standard deviations.
func (t *trial) blur() float64 {
	return 4 * grain / 2 / math.Sqrt(float64(max(t.intervals, 1)))
}

// lowest returns the batches, sorted, that other activity of the machine has probably not
// lengthened.
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

// floor returns the median of the undisturbed batches. The least one would be wrong: the
// steps of the clock make a batch too short as often as too long.
func floor(batches []float64, blur float64) float64 {
	list := lowest(batches, blur)
	return list[len(list)/2]
}

// settled reports whether enough batches agree.
func settled(batches []float64, blur float64) bool { return len(lowest(batches, blur)) >= alike }

func (t *trial) settled() bool {
	return t.minor || settled(t.probed, 0) && (!t.timed() || settled(t.measured, t.blur()))
}

// added returns the time that probing adds to a call, inside the part of it that the
// intervals contain.
func (t *trial) added() float64  { return floor(t.probed, 0) - t.bare }
func (t *trial) inside() float64 { return floor(t.measured, t.blur()) - t.bareTimed }
