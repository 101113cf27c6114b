//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// disturber plants, activates, deactivates, reads and removes probes at any functions, at random times.
type disturber struct {
	tool      *tool
	functions []function
	contested []function // functions at which the checker has probes too
	places    []function // instructions of fragile functions
	timed     []string   // names of functions whose calls the checker times
	most      int        // limit of the probes at a time
	random    *rand.Rand
	tally     *tally
	tooSlow   atomic.Bool // the victim is too slow: remove all probes

	probes []*probe
}

func (t *disturber) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := t.change(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errGone):
			t.probes = nil
		case err != nil:
			return err
		}
		t.rest(ctx)
	}
	return nil
}

func (t *disturber) rest(ctx context.Context) {
	const most = 40 * time.Millisecond
	select {
	case <-time.After(time.Duration(t.random.Int64N(int64(most)))):
	case <-ctx.Done():
	}
}

// change makes one random change.
func (t *disturber) change(ctx context.Context) error {
	fresh, err := t.tool.fresh(ctx)
	if fresh {
		t.probes = nil
	}
	if err != nil {
		return err
	}
	if t.tooSlow.Swap(false) {
		t.tally.cleared++
		return t.remove(ctx, t.probes)
	}
	switch action := t.random.IntN(10); {
	case action < 4 || len(t.probes) == 0:
		return t.plant(ctx)
	case action < 7:
		return t.turn(ctx)
	case action < 8:
		return t.read(ctx)
	default:
		return t.remove(ctx, t.some())
	}
}

// some returns a random selection of the probes, as the first ones of the list.
func (t *disturber) some() []*probe {
	t.random.Shuffle(len(t.probes), func(i, j int) { t.probes[i], t.probes[j] = t.probes[j], t.probes[i] })
	return t.probes[:t.random.IntN(len(t.probes)+1)]
}

// plant plants a random number of probes. One in four is a timer, and some are activated at once.
func (t *disturber) plant(ctx context.Context) error {
	var added []*probe
	for range t.random.IntN(t.most - len(t.probes) + 1) {
		f := t.pick()
		// A probe that reports every hit moves other probes there to the monitor. They miss no
		// call, but an interval that is open at this moment never ends.
		told := t.random.IntN(8) == 0 && !slices.Contains(t.timed, f.name)
		timed := t.random.IntN(4) == 0 && !strings.Contains(f.name, "+") // instructions have no exits
		p, err := t.tool.define(ctx, f, timed, told)
		switch {
		case errors.Is(err, errGone) || ctx.Err() != nil:
			return err
		case err != nil:
			t.tally.refuse(err.Error())
			continue
		}
		added = append(added, p)
	}
	t.probes = append(t.probes, added...)
	t.tally.planted += int64(len(added))
	if len(added) == 0 || t.random.IntN(5) == 0 {
		return nil
	}
	return t.switchAll(ctx, "csr_enable", added)
}

// pick returns a random function, rarely one of the checker's. If a victim has fragile functions,
// every other result is one of their instructions.
func (t *disturber) pick() function {
	const seldom = 60
	list := t.functions
	if len(t.places) > 0 && t.random.IntN(2) == 0 {
		list = t.places
	}
	if len(t.contested) > 0 && t.random.IntN(seldom) == 0 {
		list = t.contested
	}
	return list[t.random.IntN(len(list))]
}

func (t *disturber) turn(ctx context.Context) error {
	service := "csr_enable"
	if t.random.IntN(2) == 0 {
		service = "csr_disable"
	}
	return t.switchAll(ctx, service, t.some())
}

func (t *disturber) switchAll(ctx context.Context, service string, probes []*probe) error {
	if len(probes) == 0 {
		return nil
	}
	refused, err := t.tool.all(ctx, service, probes)
	for _, why := range refused {
		t.tally.refuse(why)
	}
	t.tally.turned += int64(len(probes))
	return err
}

func (t *disturber) read(ctx context.Context) error {
	for _, p := range t.some() {
		service := "pa_counter_read"
		if p.timer {
			service = "pa_timer_read"
		}
		if _, err := t.tool.ask(ctx, ": %s([%s])", service, p.object); err != nil {
			return err
		}
	}
	return nil
}

// remove removes probes, which must be the first ones of the list.
func (t *disturber) remove(ctx context.Context, some []*probe) error {
	if err := t.tool.remove(ctx, some); err != nil {
		return fmt.Errorf("removing %d probes: %w", len(some), err)
	}
	t.tally.removed += int64(len(some))
	t.probes = t.probes[len(some):]
	return nil
}
