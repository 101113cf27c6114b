//go:build linux && amd64

package probe

import (
	"fmt"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// crowded is the number of threads that call one probed function in a loop.
const crowded = 64

// The duration in milliseconds, and the work of a call, which is little, so that most of
// the time is the probe's.
const (
	hammerFor  = 60
	hammerWork = 1
)

// Threads measures the processor time of a hit when many threads call one probed function
// in a loop, compared with one thread. With the placement trap, threads mostly wait, so
// it measures the elapsed time divided by all hits.
func (b *Bench) Threads() (*report.Table, error) {
	t := &report.Table{Name: "threads", Title: fmt.Sprintf("What a hit costs when %d threads hammer one probe", crowded)}
	for _, c := range append(b.ours(), b.references()[0]) {
		for _, task := range []subject.Task{countPush, timePush} {
			if b.ctx.Err() != nil {
				return t, b.ctx.Err()
			}
			if suits(c, task) != "" {
				continue
			}
			b.Progress.Say("%d threads: %s, %s", crowded, c.Name, task)
			row, err := b.crowd(c, task)
			if err != nil {
				return t, fmt.Errorf("%d threads, %s: %w", crowded, c.Name, err)
			}
			t.Add(row)
		}
	}
	return t, nil
}

func (b *Bench) crowd(c subject.Contender, task subject.Task) (report.Row, error) {
	row := report.Row{What: fmt.Sprintf("%s, %s, %d threads", c.Name, task, crowded), Unit: report.Nanoseconds, Than: "one thread", Goal: report.Within(1.5)}
	if c.Name == bareEBPF {
		row.Goal = none
	}
	s, err := c.Start(task)
	if why, missing := subject.WhyMissing(err); missing {
		row.Why = why
		return row, nil
	}
	if err != nil {
		return row, err
	}
	stop := s.Stop
	defer func() { _ = stop() }()
	many, one := &pairs{}, &pairs{}
	budget, rounds := crowdBudget, b.Rounds
	for begin, round := time.Now(), 0; round < rounds && !b.spent(begin, budget); round++ {
		for _, of := range []struct {
			*pairs
			threads int
		}{{many, crowded}, {one, 1}} {
			if err := of.measure(s, of.threads, c.Slow); err != nil {
				return row, err
			}
		}
		if one.added().Median < slight {
			budget, rounds = slightTimes*crowdBudget, slightTimes*b.Rounds
		}
	}
	row.Ours = many.added()
	least := one.added()
	row.Reference = &least
	stop = func() error { return nil }
	return row, s.Stop()
}

const crowdBudget = 3 * time.Second

// Below slight, in nanoseconds, a result is the difference of two times that vary by as
// much, and needs more rounds.
const (
	slight      = 5
	slightTimes = 5
)

// pairs holds figures of probed calls, and of their twins.
type pairs struct{ probed, bare []float64 }

func (p *pairs) added() report.Stat { return report.Added(p.probed, p.bare) }

// measure adds one pair, with a number of threads.
func (p *pairs) measure(s *subject.Standing, threads int, wall bool) error {
	for _, of := range []struct {
		command string
		to      *[]float64
	}{{"threads", &p.probed}, {"spared", &p.bare}} {
		got, err := s.Target.Ask(3, "%s %s %d %d %d", of.command, s.Function, hammerWork, threads, hammerFor)
		if err != nil {
			return err
		}
		calls, took := got[0], got[1]
		if wall {
			took = got[2]
		}
		*of.to = append(*of.to, took/calls)
	}
	return nil
}
