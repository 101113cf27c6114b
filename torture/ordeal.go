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

// ordeal is what one victim goes through.
type ordeal struct {
	victim    *victim
	code      code // as it was before
	judge     *judge
	tormentor *tormentor
	neighbour *neighbour
	outcome   *outcome
	rounds    atomic.Int64
}

// prepare starts a victim, and finds out what there is to probe and to compare.
func (p plan) prepare(g *gateway, k kind, dir string, number uint64) (*ordeal, error) {
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
	o := &ordeal{victim: v, outcome: &outcome{name: k.name}}
	if err := o.cast(p, g, fixed, number); err != nil {
		v.kill()
		return nil, err
	}
	return o, nil
}

// cast appoints the judge and the tormentor.
func (o *ordeal) cast(p plan, g *gateway, fixed map[string]int64, number uint64) error {
	v := o.victim
	all, err := functionsOf(v.pid())
	if err != nil {
		return err
	}
	if o.code, err = readCode(v.pid()); err != nil {
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
	w, err := newWitness(g, v, kept)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f function) bool { return f.addr == kept.addr })
	places, err := fragile(all)
	if err != nil {
		return err
	}
	o.neighbour = newNeighbour(v, all, counted, rand.New(rand.NewPCG(p.seed, 2*number+3)))
	o.tormentor = &tormentor{places: places, tool: &tool{gateway: g, name: "torment-" + nameOfTool(v.name), pid: v.pid()}, most: p.most,
		functions: all, contested: contested, timed: v.timed,
		random: rand.New(rand.NewPCG(p.seed, 2*number+1)), tally: &tally{}}
	o.judge = &judge{victim: v, tool: &tool{gateway: g, name: "judge-" + nameOfTool(v.name), pid: v.pid()}, functions: counted, fixed: fixed,
		random: rand.New(rand.NewPCG(p.seed, 2*number+2)), rounds: &o.rounds, tally: &tally{}, witness: w,
		slow: func() { o.tormentor.relent.Store(true) }}
	return nil
}

func nameOfTool(name string) string { return strings.ReplaceAll(name, "+", "p") }

// names are the functions whose calls are compared.
func (o *ordeal) names() []string { return slices.Sorted(maps.Keys(o.judge.functions)) }

// run tortures until the time is over or the victim has failed.
func (o *ordeal) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	var judged, tormented error
	both.Go(func() {
		defer cancel()
		judged = o.judge.run(ctx)
	})
	both.Go(func() {
		defer cancel()
		tormented = o.tormentor.run(ctx)
	})
	both.Go(func() { o.neighbour.run(ctx) })
	both.Wait()
	o.outcome.err = errors.Join(judged, tormented)
	o.outcome.asked = o.judge.tool.asked
}

// release has all probes removed, the witness after its last testimony, and looks whether
// the victim works as ever. What killed gateways have left goes when somebody attaches
// again.
func (o *ordeal) release(ctx context.Context) {
	if o.outcome.err != nil {
		return
	}
	if o.outcome.err = o.judge.hear(ctx); o.outcome.err == nil {
		o.outcome.err = o.judge.witness.release(ctx)
	}
	if o.outcome.err != nil {
		return
	}
	for _, t := range []*tool{o.judge.tool, o.tormentor.tool} {
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

// inspect sees that the code of a victim is what it was, and that it works.
func (o *ordeal) inspect() {
	if o.outcome.err != nil {
		return
	}
	if err := o.code.unchanged(o.victim.pid()); err != nil {
		o.outcome.err = err
		return
	}
	const rounds = 3
	for range rounds {
		result, _, err := o.victim.round(time.Minute, nil)
		if err == nil && result != o.victim.calm {
			err = fmt.Errorf("in the end the result is %s, not %s", result, o.victim.calm)
		}
		if err != nil {
			o.outcome.err = err
			return
		}
	}
}
