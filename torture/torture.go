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

// plan is the configuration of a run.
type plan struct {
	mirador    string // path of the program
	time       time.Duration
	kills      int
	placements string
	programs   []string // all if empty
	most       int      // limit of a disturber's probes at a time
	seed       uint64
	progress   io.Writer
}

// run tests all victims and returns the result of each. The error is about what could not be
// started or ended; errors of victims are in their outcomes.
func (p plan) run(ctx context.Context) (outcomes []*outcome, kills int, err error) {
	dir, err := os.MkdirTemp("", "mirador-torture-")
	if err != nil {
		return nil, 0, err
	}
	g, err := openGateway(p.mirador, p.placements, dir)
	if err != nil {
		return nil, 0, err
	}
	var trials []*trial
	defer func() {
		for _, o := range trials {
			o.victim.Kill()
		}
		if err == nil && !slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.err != nil }) {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(p.progress, "the gateway's log is in", dir)
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
		trials = append(trials, o)
		fmt.Fprintf(p.progress, "%s: pid %d, %d functions, counted are %s\n", k.name, o.victim.PID, len(o.disturber.functions), strings.Join(o.names(), ", "))
	}
	kills, err = p.torture(ctx, g, trials)
	for _, o := range trials {
		o.release(context.WithoutCancel(ctx)) // also after an interrupt
		outcomes = append(outcomes, o.outcome)
	}
	if stopped := g.stop(); err == nil {
		err = stopped
	}
	for _, o := range trials {
		o.inspect()
		o.outcome.add(o.checker.tally)
		o.outcome.add(o.disturber.tally)
		o.outcome.add(o.otherTool.tally)
	}
	return outcomes, kills, err
}

// torture runs the tests and kills the gateway at moments chosen beforehand, until the time is over.
func (p plan) torture(ctx context.Context, g *gateway, trials []*trial) (kills int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	left := int64(len(trials))
	for _, o := range trials {
		all.Go(func() {
			o.run(ctx)
			if atomic.AddInt64(&left, -1) == 0 {
				cancel()
			}
		})
	}
	all.Go(func() { p.tell(ctx, trials) })
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

// tell prints the progress every few seconds.
func (p plan) tell(ctx context.Context, trials []*trial) {
	const often = 10 * time.Second
	begin := time.Now()
	for {
		select {
		case <-time.After(often):
		case <-ctx.Done():
			return
		}
		fmt.Fprintf(p.progress, "%v:", time.Since(begin).Round(time.Second))
		for _, o := range trials {
			fmt.Fprintf(p.progress, " %s %d rounds,", o.victim.name, o.rounds.Load())
		}
		fmt.Fprintln(p.progress)
	}
}
