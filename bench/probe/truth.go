//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// lengths are the known durations of the functions.
var lengths = []time.Duration{usual, time.Microsecond, 10 * time.Microsecond}

// truthSpan is the total duration of the calls of a mean, and truthSlow limits their
// number if a hit takes long. Contenders that can reset their figures use the shorter
// truthSpanAnew, which is rarely interrupted, even by the timer of the kernel's clock,
// and measure as often as time permits, because a machine can be disturbed for longer
// than one span. The twin is measured in equally short parts.
const (
	truthSpan     = 20 * time.Millisecond
	truthSpanAnew = 300 * time.Microsecond
	truthSlow     = 200
)

// Truth compares the mean duration that contenders report with the true duration of the
// function: its unprobed twin takes equally long.
func (b *Bench) Truth() (*report.Table, error) {
	t := &report.Table{Name: "truth", Title: "The mean duration that is reported, beside the true one"}
	restore, err := subject.OnCPU(cpu)
	if err != nil {
		return t, err
	}
	all := slices.Concat(b.ours(), b.references(), b.peers.Contenders())
	for _, length := range lengths {
		for _, c := range all {
			if b.ctx.Err() != nil {
				break
			}
			b.Progress.Say("the truth about %v: %s", length, c.Name)
			row, one := b.truth(c, length)
			if one != nil {
				err = errors.Join(err, fmt.Errorf("truth, %s: %w", c.Name, one))
				continue
			}
			t.Add(row)
		}
	}
	return t, errors.Join(err, restore(), b.ctx.Err())
}

func (b *Bench) truth(c subject.Contender, length time.Duration) (report.Row, error) {
	row := report.Row{What: fmt.Sprintf("%s, %v", c.Name, length), Unit: report.Nanoseconds, Than: "truth", Why: suits(c, timePush)}
	if c.Name == inCode {
		row.Goal = report.Near(0.05)
	}
	if row.Why != "" {
		return row, nil
	}
	var told, known []float64
	begin := time.Now()
	for again := true; again; again = len(told) < b.Rounds && !b.spent(begin, truthBudget) {
		more, truth, err := b.tell(c, length)
		if why, missing := subject.WhyMissing(err); missing {
			row.Why = why
			return row, nil
		}
		if err != nil {
			return row, err
		}
		told, known = append(told, more...), append(known, truth...)
	}
	row.Ours = report.Summary(told)
	reference := report.Summary(known)
	row.Reference = &reference
	return row, nil
}

const truthBudget = 1200 * time.Millisecond

func suits(c subject.Contender, t subject.Task) string {
	if c.Suits == nil {
		return ""
	}
	return c.Suits(t)
}

// tell measures with a contender once, or repeatedly if it can reset its figures.
func (b *Bench) tell(c subject.Contender, length time.Duration) (told, truth []float64, err error) {
	s, err := c.Start(timePush)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if s.Mean == nil {
		return nil, nil, &subject.Missing{Why: "it reports no durations"}
	}
	if err := s.Target.Pin(cpu); err != nil {
		return nil, nil, err
	}
	calls := int(truthSpan / length)
	if s.Begin != nil {
		calls = int(truthSpanAnew / length)
	}
	if c.Slow {
		calls = min(calls, truthSlow)
	}
	begin := time.Now()
	for again := true; again; again = s.Begin != nil && !b.spent(begin, truthBudget) {
		reported, ns, err := meanOf(s, b.work(length), calls)
		if err != nil {
			return nil, nil, err
		}
		told, truth = append(told, reported), append(truth, ns)
	}
	return told, truth, nil
}

// meanOf returns the mean reported for some calls, and the duration of a call of the
// twin.
func meanOf(s *subject.Standing, work, calls int) (reported, truth float64, err error) {
	if truth, err = trueLength(s, work, calls); err != nil {
		return 0, 0, err
	}
	if s.Begin != nil {
		if err := s.Begin(); err != nil {
			return 0, 0, err
		}
	}
	if _, err := s.Target.Ask(1, "run %s %d %d", s.Function, work, calls); err != nil {
		return 0, 0, err
	}
	reported, err = s.Mean()
	return reported, truth, err
}

// trueLength returns the duration of an undisturbed call of the twin.
func trueLength(s *subject.Standing, work, calls int) (float64, error) {
	const parts = 10
	each := max(calls/parts, 1)
	var list []float64
	for range parts {
		took, err := s.Target.Ask(1, "twin %s %d %d", s.Function, work, each)
		if err != nil {
			return 0, err
		}
		list = append(list, took[0]/float64(each))
	}
	return slices.Min(list), nil
}
