package measure

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mirador/cli/gate/request"
)

// A failure is explained by one more run of both programs, with probes on the functions that the
// unit calls, and on what the process does.

const (
	explained    = time.Second // how long each program runs for an explanation
	mostCallees  = 20
	mostReasons  = 4
	worthSaying  = 0.005 // differences below this part of the unit's time are left out
	systemCalls  = "SYSCALL_COUNT"
	waitingTimes = "WAIT_TIME"
)

// profile is what a program did in each call of a unit.
type profile struct {
	calls, times   map[string]float64 // of callees, by their ids without the program
	system, waited float64            // system calls, and milliseconds of waiting, of the whole process
}

// Explain returns sentences about what head does more than base in each call of a unit, the most
// expensive first.
func (r *Runner) Explain(ctx context.Context, base, head Side, region string) (reasons []string, err error) {
	from, err := r.profile(ctx, base, region)
	if err != nil {
		return nil, err
	}
	to, err := r.profile(ctx, head, region)
	if err != nil {
		return nil, err
	}
	return compare(from, to), nil
}

// compare writes what differs.
func compare(from, to *profile) (reasons []string) {
	type difference struct {
		text string
		more float64
	}
	var found []difference
	for name, ms := range to.times {
		if more := ms - from.times[name]; name != "" && math.Abs(more) > worthSaying*to.times[""] {
			found = append(found, difference{fmt.Sprintf("%s, which it calls %.3g times (base: %.3g), takes %+.4g us", name, to.calls[name], from.calls[name], more*1e3), more})
		}
	}
	slices.SortFunc(found, func(a, b difference) int {
		switch {
		case a.more > b.more:
			return -1
		case a.more < b.more:
			return 1
		}
		return 0
	})
	for _, f := range found[:min(len(found), mostReasons)] {
		reasons = append(reasons, f.text)
	}
	if more := to.system - from.system; math.Abs(more) > 0.01 {
		reasons = append(reasons, fmt.Sprintf("the process makes %.3g system calls (base: %.3g)", to.system, from.system))
	}
	if more := to.waited - from.waited; math.Abs(more) > worthSaying*to.times[""] {
		reasons = append(reasons, fmt.Sprintf("the process waits %.4g us (base: %.4g us)", to.waited*1e3, from.waited*1e3))
	}
	return reasons
}

// profile runs a program for a moment.
func (r *Runner) profile(ctx context.Context, s Side, region string) (p *profile, err error) {
	t, err := r.start(ctx, s)
	if t != nil {
		defer func() { err = errors.Join(err, r.finish(t)) }()
	}
	if err != nil {
		return nil, err
	}
	callees, err := r.callees(ctx, t, region)
	if err != nil {
		return nil, err
	}
	// The probes are set before the first call, and are read while the program is stopped, so that
	// they all cover the same calls.
	unit := r.unit(region, t)
	gauges, err := r.plantAll(ctx, t, append([]string{unit}, callees...))
	if err != nil {
		return nil, err
	}
	process := r.processGauges(ctx, t)
	if _, err := r.Client.Continue(ctx, t.app); err != nil {
		return nil, err
	}
	if err := r.ready(ctx, t); err != nil {
		return nil, err
	}
	if r.Load != "" {
		if t.load, err = r.shell(r.Load, t); err != nil {
			return nil, err
		}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-t.ended:
		return nil, t.failed("ended while its failure was explained %s", t.failure())
	case <-time.After(explained):
	}
	if err := (&player{subject: t}).stop(ctx); err != nil {
		return nil, err
	}
	all, err := r.executed(ctx, gauges)
	if err != nil {
		return nil, err
	}
	return r.perCall(ctx, all, process, unit)
}

// processGauges measures the whole process, as far as this user may.
func (r *Runner) processGauges(ctx context.Context, t *subject) (gauges []gauge) {
	for _, name := range []string{systemCalls, waitingTimes} {
		l := request.Limit{Kind: request.Exact, Metric: name}
		if p, err := r.Client.Instrument(ctx, t.app, r.requestOf(l, t)); err == nil {
			gauges = append(gauges, gauge{l, p})
		}
	}
	return gauges
}

// perCall returns what was measured, divided by the number of executions of the unit.
func (r *Runner) perCall(ctx context.Context, all []Hot, process []gauge, unit string) (*profile, error) {
	i := slices.IndexFunc(all, func(h Hot) bool { return h.Region == unit })
	if i < 0 {
		return nil, fmt.Errorf("%s was not executed while its failure was explained, or its probe is too expensive", unit)
	}
	n := all[i].Count
	p := &profile{calls: map[string]float64{}, times: map[string]float64{}}
	for _, h := range all {
		_, name, _ := strings.Cut(h.Region, ":")
		if h.Region == unit {
			name = ""
		}
		p.calls[name], p.times[name] = h.Count/n, h.Total/n
	}
	for _, g := range process {
		v, err := r.read(ctx, g)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil: // no system call, or none that waited
		case g.limit.Metric == systemCalls:
			p.system = v.Value / n
		default:
			p.waited = v.Value / n
		}
	}
	return p, nil
}

// callees returns the ids of the functions that a unit calls directly, in the same file.
func (r *Runner) callees(ctx context.Context, t *subject, region string) (names []string, err error) {
	s, err := r.Client.Structure(ctx, t.app)
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(t.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, p := range s.Programs {
		for _, u := range p.Regions {
			if u.ID != r.unit(region, t) {
				continue
			}
			d := dump{file: f, program: p, seen: map[uint64]bool{}}
			for _, other := range d.one(u) {
				if !slices.Contains(names, other.ID) && len(names) < mostCallees {
					names = append(names, other.ID)
				}
			}
		}
	}
	return names, nil
}
