package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mirador/cli/gate/request"
	"mirador/mir"
	"mirador/mir/client"
	"mirador/sir"
)

// Value is a measured value with its error: the true value is at most that far away.
type Value struct{ Value, Error float64 }

// gauge is a limit with its probe.
type gauge struct {
	limit request.Limit
	probe *client.Probe
}

// Values runs the program of a side and measures every limit once in each run. A run is one execution
// of a program that ends, one execution of the load of a server, or a part of the time that --for
// gives. If all limits are exact, there is one run.
func (r *Runner) Values(ctx context.Context, s Side, limits []request.Limit) ([][]Value, error) {
	values := make([][]Value, len(limits))
	runs := r.Runs
	if !slices.ContainsFunc(limits, func(l request.Limit) bool { return l.Kind != request.Exact }) {
		runs = 1
	}
	if r.Load == "" && r.For == 0 {
		if s.Command == "" {
			return nil, errors.New("a running process is measured for a time: say how long with --for")
		}
		for n := range runs {
			r.Note("run %d of %d: %s", n+1, runs, s.Command)
			if err := r.execute(ctx, s, limits, values, 1); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
	return values, r.execute(ctx, s, limits, values, runs)
}

// execute starts or attaches the program, measures the given number of runs, and ends it.
func (r *Runner) execute(ctx context.Context, s Side, limits []request.Limit, values [][]Value, runs int) (err error) {
	t, err := r.start(ctx, s)
	if t != nil {
		defer func() { err = errors.Join(err, r.finish(t)) }()
	}
	if err != nil {
		return err
	}
	gauges, err := r.plant(ctx, t, limits)
	if err != nil {
		return err
	}
	if err := r.begin(ctx, t); err != nil {
		return err
	}
	for n := range runs {
		if r.Load != "" || r.For > 0 {
			r.Note("run %d of %d: %s", n+1, runs, t.name)
		}
		if err := r.one(ctx, t, gauges, values, runs, n); err != nil {
			return err
		}
	}
	return nil
}

// one measures one run.
func (r *Runner) one(ctx context.Context, t *subject, gauges []gauge, values [][]Value, runs, n int) error {
	if r.Load != "" || r.For > 0 && n > 0 || r.Ready != "" {
		if err := r.again(ctx, gauges); err != nil {
			return err
		}
	}
	if err := r.work(ctx, t, runs); err != nil {
		return err
	}
	for i, g := range gauges {
		// Without a load, exact values are those of the whole time.
		if exact := g.limit.Kind == request.Exact; exact && r.Load == "" && r.For > 0 && n < runs-1 {
			continue
		}
		v, err := r.read(ctx, g)
		if err != nil {
			return err
		}
		values[i] = append(values[i], v)
	}
	return nil
}

// again resets the probes for a new run. In later parts of the time that --for gives, exact limits are
// not reset, because they are for the whole time.
func (r *Runner) again(ctx context.Context, gauges []gauge) error {
	for _, g := range gauges {
		if g.limit.Kind == request.Exact && r.Load == "" {
			continue
		}
		if err := g.probe.Reset(ctx); err != nil {
			return err
		}
	}
	return nil
}

// work lets the program do what is measured.
func (r *Runner) work(ctx context.Context, t *subject, runs int) error {
	switch {
	case r.Load != "":
		if err := r.run(ctx, r.Load, t); err != nil {
			return fmt.Errorf("the load failed: %w", err)
		}
		if t.hasEnded() {
			return t.failed("ended under the load: %s", t.failure())
		}
	case r.For > 0:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.ended:
			return t.failed("ended before it was measured for %v %s; give a shorter --for, or none for a program that ends", r.For, t.failure())
		case <-time.After(r.For / time.Duration(runs)):
		}
	default:
		defer r.reminder.set(ctx, t, r.Warn).Stop()
		if err := t.wait(ctx); err != nil {
			return fmt.Errorf("%w: %s did not end; for a server use --load or --for", err, t.name)
		}
		if f := t.failure(); f != "" {
			return t.failed("%s", f)
		}
		if t.left() != "" {
			return t.failed("ended")
		}
	}
	return nil
}

// plant sets a probe for each limit.
func (r *Runner) plant(ctx context.Context, t *subject, limits []request.Limit) (gauges []gauge, err error) {
	if err := r.locate(ctx, t, limits); err != nil {
		return nil, err
	}
	for _, l := range limits {
		p, err := r.Client.Instrument(ctx, t.app, r.requestOf(l, t))
		if err != nil {
			return nil, fmt.Errorf("line %d of the gate, %s: %w", l.Pos.Line, l.Metric, err)
		}
		gauges = append(gauges, gauge{l, p})
		if at := p.Last().Dearest(); l.Of != (request.Of{}) && at.Name != "inline" {
			r.remarkPlacement(l, at.Name, at.Cost)
		}
	}
	return gauges, nil
}

// unit returns the id of a unit of a gate in this program. base and head may be files of different
// names, and a gate need not name the program.
func (r *Runner) unit(name string, t *subject) string {
	module, function, ok := strings.Cut(name, ":")
	switch {
	case name == "":
		return ""
	case !ok:
		return t.name + ":" + name
	case slices.Contains(r.Programs, module):
		return t.name + ":" + function
	}
	return name
}

// requestOf returns the request of a probe for a limit. Times are aggregated over all
// executions; other values are those of whole processes.
func (r *Runner) requestOf(l request.Limit, t *subject) *mir.InstrRequest {
	q := &mir.InstrRequest{Metrics: []mir.Metric{{Name: l.Metric}}, Activated: true, Flush: true, Fast: l.Fast}
	if l.Region != "" {
		q.Region = &mir.CodeRegion{From: r.unit(l.Region, t), To: r.unit(l.To, t)}
	}
	switch {
	case l.Of.Percent > 0:
		q.Percentiles = []float64{l.Of.Percent}
		q.Measuring = &mir.Measuring{Aggregates: []mir.Function{mir.Average}}
	case l.Of.Mean:
		q.Measuring = &mir.Measuring{Aggregates: []mir.Function{mir.Average}}
	case l.Region != "" && l.Metric != "COUNT":
		q.Measuring = &mir.Measuring{Aggregates: []mir.Function{mir.Sum}} // of what the executions have added
	default:
		q.Entities = []mir.Entity{{Kind: mir.Process, ID: "*"}}
	}
	return q
}

// read reads the value of a limit: the sum over all processes of a program that forks.
func (r *Runner) read(ctx context.Context, g gauge) (v Value, err error) {
	got, err := g.probe.Value(ctx)
	if err != nil {
		return v, err
	}
	found := false
	for i := range got.Values {
		one := &got.Values[i]
		f, ok := one.Float()
		if g.limit.Of.Percent > 0 {
			if ok = len(one.Percentiles) > 0; ok {
				v, err = percentile(one.Percentiles[0])
			}
			f = 0
		}
		found = found || ok
		v.Value += f
	}
	if !found && g.limit.Kind == request.Exact && g.limit.Region != "" {
		return v, err // no execution
	}
	if !found {
		return v, fmt.Errorf("line %d of the gate: %s of %s was never measured: the program did not execute it, or ended before it could be read", g.limit.Pos.Line, g.limit.Metric, orProgram(g.limit.Region))
	}
	return v, err
}

func orProgram(region string) string {
	if region == "" {
		return "the program"
	}
	return region
}

func percentile(p mir.Percentile) (v Value, err error) {
	_, err = fmt.Sscan(p.Value+" "+p.Error, &v.Value, &v.Error)
	return v, err
}

// locate finds the limits' units in the source of head. Names of units that are no ids are found by the
// gateway only.
func (r *Runner) locate(ctx context.Context, t *subject, limits []request.Limit) error {
	if t.isBase || !slices.ContainsFunc(limits, func(l request.Limit) bool { return l.Region != "" }) {
		return nil
	}
	s, err := r.Client.Structure(ctx, t.app)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if place, ok := find(s, r.unit(l.Region, t)); ok {
			r.Places[l.Region] = place
		}
	}
	return nil
}

func find(s *sir.Structure, id string) (Place, bool) {
	for _, p := range s.Programs {
		for _, u := range p.Regions {
			if u.Line > 0 && u.ID == id {
				return Place{u.File, u.Line}, true
			}
		}
	}
	return Place{}, false
}
