//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// patience limits a round of a victim that has almost no probes left.
const patience = 2 * time.Minute

// checker makes a victim work round after round. Between rounds, while the victim waits, it plants,
// activates, deactivates and removes its own probes at functions whose true counts are known.
type checker struct {
	victim    *victim
	tool      *tool
	functions map[string]function // functions whose true counts are known
	fixed     map[string]int64    // calls in a round, of functions that gdb has counted
	random    *rand.Rand
	slow      func()
	rounds    *atomic.Int64 // for the progress report
	tally     *tally
	kept      *keptProbe

	probes []*probe
}

func (j *checker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := j.round(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// round changes probes, makes the victim work for one round, and compares.
func (j *checker) round(ctx context.Context) error {
	trusted := j.prepare(ctx)
	if trusted != nil && !errors.Is(trusted, errGone) {
		return trusted
	}
	result, counts, err := j.victim.round(patience, j.slow)
	if err != nil {
		return err
	}
	j.tally.rounds++
	j.rounds.Add(1)
	if result != j.victim.calm {
		return fmt.Errorf("the result is %s, want %s", result, j.victim.calm)
	}
	maps.Copy(counts, j.fixed)
	j.kept.want += counts[j.victim.kept]
	if trusted == nil {
		err = j.compare(ctx, counts)
	}
	if err == nil || errors.Is(err, errGone) {
		err = j.compareKept(ctx)
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// compareKept compares the kept probe with the true count.
func (j *checker) compareKept(ctx context.Context) error {
	outlived, err := j.kept.compare(ctx)
	if outlived {
		j.tally.outlived++
	}
	return err
}

// prepare changes some probes at random.
func (j *checker) prepare(ctx context.Context) error {
	fresh, err := j.tool.fresh(ctx)
	if fresh {
		j.probes = nil
	}
	if err != nil {
		return err
	}
	for name, f := range j.functions {
		i := slices.IndexFunc(j.probes, func(p *probe) bool { return p.name == name })
		switch change := j.random.IntN(10); {
		case i < 0 && change < 5:
			timed := slices.Contains(j.victim.timed, name) && j.random.IntN(2) == 0
			// A probe that reports every hit cannot outlive the gateway.
			told := j.random.IntN(4) == 0 && name != j.victim.kept
			p, err := j.tool.define(ctx, f, timed, told)
			if err == nil {
				err = j.turn(ctx, p, true)
			}
			if err != nil {
				return err
			}
			j.probes = append(j.probes, p)
			j.tally.planted++
		case i < 0:
		case change < 2:
			if err := j.tool.remove(ctx, j.probes[i:i+1]); err != nil {
				return err
			}
			j.probes = slices.Delete(j.probes, i, i+1)
			j.tally.removed++
		case change < 5:
			if err := j.turn(ctx, j.probes[i], !j.probes[i].active); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn activates or deactivates a probe. A refusal is an error, because these functions can be probed.
func (j *checker) turn(ctx context.Context, p *probe, on bool) error {
	service := "csr_disable"
	if on {
		service = "csr_enable"
	}
	refused, err := j.tool.all(ctx, service, []*probe{p})
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("%s of %s: %s", service, p.name, refused[0])
	}
	p.active = on
	j.tally.turned++
	return err
}

// compare compares each probe with the true count while it was active.
func (j *checker) compare(ctx context.Context, counts map[string]int64) error {
	for _, p := range j.probes {
		if p.active {
			p.want += counts[p.name]
		}
		got, err := j.tool.calls(ctx, p)
		if err != nil {
			return err
		}
		j.tally.compared++
		if got != p.want {
			return fmt.Errorf("%s (timed: %v, active: %v) was called %d times, and the probe has counted %d", p.name, p.timer, p.active, p.want, got)
		}
	}
	return nil
}
