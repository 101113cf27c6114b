//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// trial is the test of one victim.
type trial struct {
	victim    *victim
	code      code // the code before the test
	checker   *checker
	disturber *disturber
	otherTool *otherTool
	outcome   *outcome
	rounds    atomic.Int64
}

// prepare starts a victim, and finds the functions to probe and the functions whose counts are compared.
func (p plan) prepare(g *gateway, k kind, dir string, number uint64) (*trial, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	command, err := k.build(dir)
	if err != nil {
		return nil, err
	}
	fixed := map[string]int64{}
	if len(k.counted) > 0 {
		if fixed, err = countWithGDB(k, command, dir); err != nil {
			return nil, err
		}
	}
	v, err := start(k, command)
	if err != nil {
		return nil, err
	}
	o := &trial{victim: v, outcome: &outcome{name: k.name}}
	if err := o.assign(p, g, fixed, number); err != nil {
		v.Kill()
		return nil, err
	}
	return o, nil
}

// assign creates the goroutines' objects.
func (o *trial) assign(p plan, g *gateway, fixed map[string]int64, number uint64) error {
	v := o.victim
	all, err := functionsOf(v.PID)
	if err != nil {
		return err
	}
	if o.code, err = readCode(v.PID); err != nil {
		return err
	}
	_, counts, err := v.round(patience, nil)
	if err != nil {
		return err
	}
	maps.Copy(counts, fixed)
	counted := make(map[string]function)
	for name := range counts {
		f, ok := find(all, name, v.file)
		if !ok {
			return fmt.Errorf("there is no function %s", name)
		}
		counted[name] = f
	}
	var contested []function
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		if name != v.kept {
			contested = append(contested, counted[name])
		}
	}
	o.outcome.functions = len(all)
	kept := counted[v.kept]
	w, err := newKeptProbe(g, v, kept)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f function) bool { return f.addr == kept.addr })
	places, err := fragile(all)
	if err != nil {
		return err
	}
	o.otherTool = newOtherTool(v, all, counted, rand.New(rand.NewPCG(p.seed, 2*number+3)))
	o.disturber = &disturber{places: places, tool: &tool{gateway: g, name: "disturber-" + nameOfTool(v.name), pid: v.PID}, most: p.most,
		functions: all, contested: contested, timed: v.timed,
		random: rand.New(rand.NewPCG(p.seed, 2*number+1)), tally: &tally{}}
	o.checker = &checker{victim: v, tool: &tool{gateway: g, name: "checker-" + nameOfTool(v.name), pid: v.PID}, functions: counted, fixed: fixed,
		random: rand.New(rand.NewPCG(p.seed, 2*number+2)), rounds: &o.rounds, tally: &tally{}, kept: w,
		slow: func() { o.disturber.tooSlow.Store(true) }}
	return nil
}

func nameOfTool(name string) string { return strings.ReplaceAll(name, "+", "p") }

// names returns the functions whose counts are compared.
func (o *trial) names() []string { return slices.Sorted(maps.Keys(o.checker.functions)) }

// run disturbs the victim until the time is over or the victim has failed.
func (o *trial) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	var checked, disturbed error
	both.Go(func() {
		defer cancel()
		checked = o.checker.run(ctx)
	})
	both.Go(func() {
		defer cancel()
		disturbed = o.disturber.run(ctx)
	})
	both.Go(func() { o.otherTool.run(ctx) })
	both.Wait()
	o.outcome.err = errors.Join(checked, disturbed)
	o.outcome.asked = o.checker.tool.asked
}

// release compares the kept probe for the last time, removes all probes, and checks that the victim
// works correctly. Attaching again removes what killed gateways have left.
func (o *trial) release(ctx context.Context) {
	if o.outcome.err != nil {
		return
	}
	if o.outcome.err = o.checker.compareKept(ctx); o.outcome.err == nil {
		o.outcome.err = o.checker.kept.release(ctx)
	}
	if o.outcome.err != nil {
		return
	}
	for _, t := range []*tool{o.checker.tool, o.disturber.tool} {
		_, err := t.fresh(ctx)
		if err == nil {
			err = t.finalize(ctx)
		}
		if err != nil {
			o.outcome.err = err
			return
		}
	}
	o.inspect()
}

// inspect checks that the code of a victim is unchanged and that it works correctly.
func (o *trial) inspect() {
	if o.outcome.err != nil {
		return
	}
	if err := o.code.unchanged(o.victim.PID); err != nil {
		o.outcome.err = err
		return
	}
	const rounds = 3
	for range rounds {
		result, _, err := o.victim.round(time.Minute, nil)
		if err == nil && result != o.victim.calm {
			err = fmt.Errorf("after the removal of all probes the result is %s, want %s", result, o.victim.calm)
		}
		if err != nil {
			o.outcome.err = err
			return
		}
	}
}
