package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// Spent returns sentences about what head does in each call of a unit, the most expensive first.
func (r *Runner) Spent(ctx context.Context, head Side, region string) (reasons []string, err error) {
	p, err := r.profile(ctx, head, region)
	if err != nil {
		return nil, err
	}
	names := slices.SortedFunc(maps.Keys(p.times), func(a, b string) int { return cmp.Compare(p.times[b], p.times[a]) })
	for _, name := range names {
		if name != "" && p.times[name] > worthSaying*p.times[""] && len(reasons) < mostReasons {
			reasons = append(reasons, fmt.Sprintf("%s, which it calls %.3g times, takes %.4g us of %.4g us", name, p.calls[name], p.times[name]*1e3, p.times[""]*1e3))
		}
	}
	if p.system > 0.01 {
		reasons = append(reasons, fmt.Sprintf("the process makes %.3g system calls", p.system))
	}
	if p.waited > worthSaying*p.times[""] {
		reasons = append(reasons, fmt.Sprintf("the process waits %.4g us", p.waited*1e3))
	}
	return reasons, nil
}

// compare writes what differs.
func compare(from, to *profile) (reasons []string) {
	type difference struct {
		text string
		more float64
	}
	var found []difference
	for name, ms := range to.times {
		if more := ms - from.times[name]; name != "" && more > worthSaying*to.times[""] {
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
	if to.system-from.system > 0.01 {
		reasons = append(reasons, fmt.Sprintf("the process makes %.3g system calls (base: %.3g)", to.system, from.system))
	}
	if to.waited-from.waited > worthSaying*to.times[""] {
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
	// they all cover the same calls. A process that the gate has not started is never stopped.
	unit := r.unit(region, t)
	gauges, err := r.plantAll(ctx, t, append([]string{unit}, callees...))
	if err != nil {
		return nil, err
	}
	process := r.processGauges(ctx, t)
	if err := r.begin(ctx, t); err != nil {
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
		if f := t.failure(); f != "" {
			return nil, t.failed("ended while its failure was explained: %s", f)
		}
	case <-time.After(explained):
		if !t.own {
			break
		}
		if err := (&player{subject: t}).stop(ctx); err != nil {
			return nil, err
		}
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
		} else if callee := calledAt(h.Region); callee != "" {
			name = callee
		}
		p.calls[name] += h.Count / n
		p.times[name] += h.Total / n
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

// callees returns the ids of what a unit calls: of its call sites, or if these are not known of the
// functions in the same file that it calls, which others may call too.
func (r *Runner) callees(ctx context.Context, t *subject, region string) (names []string, err error) {
	unit := r.unit(region, t)
	s, err := r.Client.FindUnits(ctx, t.app, unit+"/", mostRegions)
	if err != nil {
		return nil, err
	}
	for i := range s.Programs {
		for u := range s.Programs[i].All() {
			if callee := calledAt(u.ID); callee != "" && callee != "*" && len(names) < mostCallees {
				names = append(names, u.ID)
			}
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	d, u, err := dumpOf(ctx, r.Client, t, unit)
	if err != nil {
		return nil, err
	}
	defer d.file.Close()
	for _, other := range d.one(u) {
		if !slices.Contains(names, other.ID) && len(names) < mostCallees {
			names = append(names, other.ID)
		}
	}
	return names, nil
}

// calledAt returns the symbol that a call site calls, "" if the id is that of another region.
func calledAt(id string) string {
	_, called, _ := strings.Cut(id[strings.LastIndexByte(id, '/')+1:], "call.")
	callee, _, _ := strings.Cut(called, "~")
	return callee
}
