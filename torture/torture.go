//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// plan is what a run does.
type plan struct {
	mirador    string // the program
	time       time.Duration
	kills      int
	placements string
	programs   []string // none: all
	most       int      // probes of a tormentor at a time
	seed       uint64
	progress   io.Writer
}

// run tortures the victims and tells what became of each. The error is of what could
// not be begun or ended; what befell a victim is in its outcome.
func (p plan) run(ctx context.Context) (outcomes []*outcome, kills int, err error) {
	dir, err := os.MkdirTemp("", "mirador-torture-")
	if err != nil {
		return nil, 0, err
	}
	g, err := openGateway(p.mirador, p.placements, dir)
	if err != nil {
		return nil, 0, err
	}
	var ordeals []*ordeal
	defer func() {
		for _, o := range ordeals {
			o.victim.kill()
		}
		if err == nil && !slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.err != nil }) {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(p.progress, "what the gateway said is in", dir)
		}
	}()
	for i, k := range kinds {
		if len(p.programs) > 0 && !slices.Contains(p.programs, k.name) {
			continue
		}
		o, err := p.prepare(g, k, filepath.Join(dir, k.name), uint64(i))
		if err != nil {
			return nil, 0, errors.Join(fmt.Errorf("%s: %w", k.name, err), g.stop())
		}
		ordeals = append(ordeals, o)
		fmt.Fprintf(p.progress, "%s: pid %d, %d functions, counted are %s\n", k.name, o.victim.pid(), len(o.tormentor.functions), strings.Join(o.names(), ", "))
	}
	kills, err = p.torture(ctx, g, ordeals)
	for _, o := range ordeals {
		o.release(context.WithoutCancel(ctx)) // also when somebody has interrupted it
		outcomes = append(outcomes, o.outcome)
	}
	if stopped := g.stop(); err == nil {
		err = stopped
	}
	for _, o := range ordeals {
		o.inspect()
		o.outcome.add(o.judge.tally)
		o.outcome.add(o.tormentor.tally)
		o.outcome.add(o.neighbour.tally)
	}
	return outcomes, kills, err
}

// torture is the time in between. It kills the gateway at moments chosen beforehand,
// and lasts until the last kill has been.
func (p plan) torture(ctx context.Context, g *gateway, ordeals []*ordeal) (kills int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	left := int64(len(ordeals))
	for _, o := range ordeals {
		all.Go(func() {
			o.run(ctx)
			if atomic.AddInt64(&left, -1) == 0 {
				cancel()
			}
		})
	}
	all.Go(func() { p.tell(ctx, ordeals) })
	random := rand.New(rand.NewPCG(p.seed, 0))
	moments := []time.Duration{p.time}
	for range p.kills {
		moments = append(moments, time.Duration(random.Int64N(int64(p.time))))
	}
	slices.Sort(moments)
	begin := time.Now()
	for i, m := range moments {
		select {
		case <-time.After(time.Until(begin.Add(m))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || i == p.kills {
			break
		}
		if err = g.kill(); err != nil {
			break
		}
		kills++
	}
	cancel()
	all.Wait()
	return kills, err
}

// tell prints every few seconds how far all are.
func (p plan) tell(ctx context.Context, ordeals []*ordeal) {
	const often = 10 * time.Second
	begin := time.Now()
	for {
		select {
		case <-time.After(often):
		case <-ctx.Done():
			return
		}
		fmt.Fprintf(p.progress, "%v:", time.Since(begin).Round(time.Second))
		for _, o := range ordeals {
			fmt.Fprintf(p.progress, " %s %d rounds,", o.victim.name, o.rounds.Load())
		}
		fmt.Fprintln(p.progress)
	}
}
