//go:build linux && amd64

package hold

import (
	"fmt"
	"time"

	"mirador/bench/report"
	"mirador/omis/linux"
)

// hits measures one hit with one action on one CPU, with all contenders in turn.
func (b *bench) hits() error {
	var all []*contender
	defer func() {
		for _, c := range all {
			c.end()
		}
	}()
	var found [8]*contender
	for i, set := range []func() (*contender, error){
		b.bare,
		func() (*contender, error) { return b.byPtrace(0) },
		func() (*contender, error) { return b.byInt3(0) },
		func() (*contender, error) { return b.byRendezvous(0) },
		b.byFutex,
		func() (*contender, error) {
			return b.byGDB("gdb, silent", "\ncommands\nsilent\nset $sum = $sum + $rdi\ncontinue\nend")
		},
		func() (*contender, error) { return b.byGDB("gdb, condition", "if $rdi == -1") },
		b.byDelve,
	} {
		c, err := set()
		if err != nil {
			b.note(fmt.Errorf("a hit: %w", err))
			continue
		}
		found[i] = c
		if !c.missing {
			all = append(all, c)
		}
	}
	if err := b.turns(all); err != nil {
		return err
	}
	b.compareHits(found)
	return nil
}

// turns measures contenders round by round; the first round warms up.
func (b *bench) turns(all []*contender) error {
	for i := range b.Rounds + 1 {
		for _, c := range all {
			if err := c.round(b.Scale); err != nil {
				return err
			}
			if i == 0 {
				c.each, c.least = c.each[:0], 0
			}
		}
	}
	return nil
}

func (b *bench) compareHits(c [8]*contender) {
	if c[0] == nil {
		return
	}
	bare := c[0].stat()
	compare := func(ours, other *contender, goal report.Goal) {
		switch {
		case ours == nil || other == nil: // already noted
		case other.missing:
			b.alone("hit, "+ours.name+", beside "+other.name+" (missing)", ours.stat().less(bare), goal)
		default:
			b.add("hit, "+ours.name, other.name, ours.stat().less(bare), other.stat().less(bare), goal)
		}
	}
	tenfold := report.Cheaper(10)
	ptrace, int3, ours, futex, silent, condition, delve := c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	compare(ptrace, int3, report.Within(1.5))
	compare(ours, futex, report.Within(1.5))
	for _, mine := range []*contender{ptrace, ours} {
		compare(mine, silent, report.Cheaper(20))
		compare(mine, condition, tenfold)
		compare(mine, delve, tenfold)
	}
}

// crowd measures the time of a hit when fifty threads hit one place.
func (b *bench) crowd() error {
	const threads = 50
	reference, err := b.byInt3(threads)
	if err != nil {
		return err
	}
	defer reference.end()
	all := []*contender{reference}
	for _, set := range []func(int) (*contender, error){b.byPtrace, b.byRendezvous} {
		c, err := set(threads)
		if err != nil {
			return err
		}
		defer c.end()
		all = append(all, c)
	}
	for _, c := range all {
		c.hits, c.batches = 400, 1 // for each thread
	}
	if err := b.turns(all); err != nil {
		return err
	}
	each := func(c *contender) stat {
		s := c.stat()
		return stat{s.least / threads, s.median / threads}
	}
	than := each(reference)
	for _, c := range all[1:] {
		b.add(fmt.Sprintf("hit, %d threads, %s", threads, c.name), reference.name, each(c), than, report.Cheaper(0.6))
	}
	return nil
}

// print measures a request's path through the engine.
func (b *bench) print() error {
	m, err := openRig(linux.Config{})
	if err != nil {
		return err
	}
	defer func() { b.note(m.close()) }()
	const n = 2000
	s, err := timed(b.Rounds, func() error { return m.prints(n) })
	b.alone(": print([1])", stat{s.least / n, s.median / n}, report.AtMost(float64(5*time.Microsecond)))
	return err
}
