//go:build linux && amd64

package probe

import (
	"errors"
	"fmt"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// The two ways of calling.
const (
	dependent   = "LB" // each call waits for the one before
	independent = "TB"
)

var modes = []string{dependent, independent}

// figures holds what a contender adds to a call, by mode.
type figures map[string]report.Stat

// costs holds the figures of all contenders for one task, and the reasons why others are
// missing.
type costs struct {
	task  subject.Task
	added map[string]figures // by contender
	why   map[string]string
}

// entrant is a running contender with its measurements.
type entrant struct {
	subject.Contender
	*subject.Standing
	probed, bare map[string][]float64 // by mode
}

func newEntrant(c subject.Contender, s *subject.Standing) *entrant {
	return &entrant{c, s, make(map[string][]float64), make(map[string][]float64)}
}

// costBudget limits the time of one task, whatever the number of rounds.
const costBudget = 12 * time.Second

// cost measures contenders in turn at one task.
func (b *Bench) cost(task subject.Task, contenders []subject.Contender) (costs, error) {
	c := costs{task, make(map[string]figures), make(map[string]string)}
	entrants, err := b.enter(c, contenders)
	defer func() {
		for _, e := range entrants {
			err = errors.Join(err, e.Stop())
		}
	}()
	if err != nil {
		return c, err
	}
	begin := time.Now()
	for round := 0; round <= b.Rounds && !b.spent(begin, costBudget); round++ {
		b.Progress.Say("what a probe costs: %s %s, round %d of %d", task, task.Function, round, b.Rounds)
		for _, e := range entrants {
			if err := e.turn(b.work(usual), round); err != nil {
				return c, fmt.Errorf("%s, %s: %w", e.Name, task, err)
			}
		}
	}
	for _, e := range entrants {
		c.added[e.Name] = e.figures()
	}
	return c, err
}

// enter starts the contenders that suit the task and are not missing.
func (b *Bench) enter(c costs, contenders []subject.Contender) (list []*entrant, err error) {
	for _, one := range contenders {
		if b.ctx.Err() != nil {
			return list, b.ctx.Err()
		}
		if one.Suits != nil {
			if why := one.Suits(c.task); why != "" {
				c.why[one.Name] = why
				continue
			}
		}
		b.Progress.Say("what a probe costs: %s %s, starting %s", c.task, c.task.Function, one.Name)
		s, err := one.Start(c.task)
		if why, missing := subject.WhyMissing(err); missing {
			c.why[one.Name] = why
			continue
		}
		if err != nil {
			return list, fmt.Errorf("%s, %s: %w", one.Name, c.task, err)
		}
		list = append(list, newEntrant(one, s))
		if err := s.Target.Pin(cpu); err != nil {
			return list, err
		}
	}
	return list, nil
}

// A round consists of batches that are short enough to be rarely interrupted; the
// quickest counts. If a hit takes long, so does a batch, and more batches would help
// little.
const (
	batches    = 12
	batchesIf  = 3 // for slow contenders
	roundsSlow = 4 // measure slow contenders every so many rounds
)

// turn measures one round. The first one warms up.
func (e *entrant) turn(work, round int) error {
	n := batches
	if e.Slow {
		n = batchesIf
		if round%roundsSlow != 1 {
			return nil
		}
	}
	for _, mode := range modes {
		ns, err := e.Target.Ask(2, "cost %s %s %d %d", e.Function, map[string]string{dependent: "lb", independent: "tb"}[mode], work, n)
		if err != nil {
			return err
		}
		if round > 0 {
			e.probed[mode], e.bare[mode] = append(e.probed[mode], ns[0]), append(e.bare[mode], ns[1])
		}
	}
	return nil
}

func (e *entrant) figures() figures {
	f := make(figures)
	for _, mode := range modes {
		f[mode] = report.Added(e.probed[mode], e.bare[mode])
	}
	return f
}
