package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mirador/cli/gate/request"
	"mirador/sir"
)

// Hot is a function with what it did in one run.
type Hot struct {
	Region string  // its id
	Count  float64 // executions
	Total  float64 // milliseconds, including the functions that it calls
}

// mostCandidates limits how many functions are probed to find the hot ones.
const mostCandidates = 300

// Hottest runs a program once and returns the functions that took most time, including the functions
// that they call. prefix selects functions by their names; "" selects all with a line in the source.
func (r *Runner) Hottest(ctx context.Context, s Side, prefix string) (found []Hot, err error) {
	t, err := r.start(ctx, s)
	if t != nil {
		defer func() { err = errors.Join(err, r.finish(t)) }()
	}
	if err != nil {
		return nil, err
	}
	names, err := r.candidates(ctx, t, prefix)
	if err != nil {
		return nil, err
	}
	r.Note("probing %d functions", len(names))
	gauges, err := r.plantAll(ctx, t, names)
	if err != nil {
		return nil, err
	}
	if err := r.begin(ctx, t); err != nil {
		return nil, err
	}
	if err := r.work(ctx, t, 1); err != nil {
		return nil, err
	}
	return r.executed(ctx, gauges)
}

// candidates returns the ids of the functions that the program itself has, not its libraries.
func (r *Runner) candidates(ctx context.Context, t *subject, prefix string) (names []string, err error) {
	s, err := r.Client.Structure(ctx, t.app)
	if err != nil {
		return nil, err
	}
	own := func(u *sir.Region, program string) bool {
		if prefix != "" {
			return strings.HasPrefix(u.ID, prefix) || strings.HasPrefix(u.Name, prefix)
		}
		return program == t.path && u.Line > 0
	}
	for i := range s.Programs {
		for u := range s.Programs[i].All() {
			if u.Kind == sir.Function && u.HasName() && own(u, s.Programs[i].Path) {
				names = append(names, u.ID)
			}
		}
	}
	if own := slices.DeleteFunc(slices.Clone(names), func(id string) bool { return !ofModule(id) }); len(names) > mostCandidates && len(own) > 0 {
		names = own
	}
	switch {
	case len(names) == 0 && prefix != "":
		return nil, fmt.Errorf("%s has no function whose name begins with %s; mirador sir %s lists them", t.name, prefix, t.path)
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no debug information (compile it with -g); or name functions by --functions", t.name)
	case len(names) > mostCandidates:
		return nil, fmt.Errorf("%s has %d functions, and %d are probed at most: name some by the beginning of their names, with --functions", t.name, len(names), mostCandidates)
	}
	return names, nil
}

// ofModule reports whether the id of a function is that of a Go program's own package, or of a module: packages of
// the standard library have no domain in their path.
func ofModule(id string) bool {
	_, name, _ := strings.Cut(id, ":")
	domain, _, path := strings.Cut(name, "/")
	return strings.HasPrefix(name, "main.") || path && strings.Contains(domain, ".")
}

// mostShare is the part of the program's time that a probe may take while the hot functions are
// searched. A probe that takes more is deactivated, and its function is left out.
const mostShare = 0.9

// plantAll sets probes that count and time functions. It returns two gauges for each function: the
// count and the time. Functions that cannot be probed are left out.
func (r *Runner) plantAll(ctx context.Context, t *subject, names []string) (gauges []gauge, err error) {
	for _, name := range names {
		pair := []request.Limit{{Region: name, Metric: "COUNT", Kind: request.Exact}, {Region: name, Metric: "WC_TIME", Kind: request.Absolute, Of: request.Of{Mean: true}}}
		for _, l := range pair {
			q := r.requestOf(l, t)
			q.Budget = mostShare
			p, err := r.Client.Instrument(ctx, t.app, q)
			if err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				break
			}
			gauges = append(gauges, gauge{l, p})
		}
		gauges = gauges[:len(gauges)/2*2]
	}
	if len(gauges) == 0 {
		return nil, fmt.Errorf("none of %d functions of %s can be measured; mirador doctor says what works", len(names), t.name)
	}
	return gauges, nil
}

// executed reads the gauges of plantAll, and returns the functions that were executed, those that took
// most time first.
func (r *Runner) executed(ctx context.Context, gauges []gauge) (found []Hot, err error) {
	for pair := range slices.Chunk(gauges, 2) {
		count, err := r.read(ctx, pair[0])
		if err != nil {
			return nil, err
		}
		status, err := pair[1].probe.Status(ctx)
		if err != nil {
			return nil, err
		}
		if status.State == "inactive" {
			r.Remark("%s is left out, because its probe is too expensive: %s", pair[0].limit.Region, status.Notice)
		}
		if count.Value == 0 || status.State == "inactive" {
			continue
		}
		mean, err := r.read(ctx, pair[1])
		if err != nil {
			continue // executions that have not ended
		}
		found = append(found, Hot{pair[0].limit.Region, count.Value, count.Value * mean.Value})
	}
	slices.SortStableFunc(found, func(a, b Hot) int {
		switch {
		case a.Total > b.Total:
			return -1
		case a.Total < b.Total:
			return 1
		}
		return 0
	})
	return found, nil
}
