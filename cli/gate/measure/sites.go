package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mirador/cli/gate/request"
	"mirador/mir/client"
	"mirador/sir"
)

// A number that is not what it must be is explained by one more run of each program, which counts its
// parts: the executions of each call of a function, or the system calls of each class.

// mostParts limits the probes of such a run.
const mostParts = 40

// classes are the metrics of the parts of SYSCALL_COUNT.
var classes = []string{"%desc", "%file", "%ipc", "%memory", "%network", "%process", "%signal", "%time"}

// Parts returns the parts of a number in head, compared with base if base is not nil: those that differ most
// come first. It returns none if the number has no parts that can be counted.
func (r *Runner) Parts(ctx context.Context, base *Side, head Side, l request.Limit) ([]string, error) {
	if l.Metric != systemCalls && (l.Metric != "COUNT" || l.Region == "" || l.To != "") {
		return nil, nil
	}
	var from map[string]float64
	if base != nil {
		var err error
		if from, err = r.parts(ctx, *base, l); err != nil {
			return nil, err
		}
	}
	to, err := r.parts(ctx, head, l)
	return differences(from, to), err
}

// differences says what differs, or without base what there is.
func differences(from, to map[string]float64) (list []string) {
	names := slices.Collect(maps.Keys(to))
	for name := range from {
		if _, both := to[name]; !both {
			names = append(names, name)
		}
	}
	more := func(name string) float64 { return max(to[name]-from[name], from[name]-to[name]) }
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(more(b), more(a)), strings.Compare(a, b))
	})
	for _, name := range names {
		switch {
		case more(name) == 0 || len(list) == mostReasons:
			return list
		case from == nil:
			list = append(list, fmt.Sprintf("%s %.15g", name, to[name]))
		default:
			list = append(list, fmt.Sprintf("%s %.15g (base: %.15g)", name, to[name], from[name]))
		}
	}
	return list
}

// parts runs a program once and counts the parts of a limit's number.
func (r *Runner) parts(ctx context.Context, s Side, l request.Limit) (counts map[string]float64, err error) {
	t, err := r.start(ctx, s)
	if t != nil {
		defer func() { err = errors.Join(err, r.finish(t)) }()
	}
	if err != nil {
		return nil, err
	}
	limits, err := r.partsOf(ctx, t, l)
	if err != nil {
		return nil, err
	}
	gauges := map[string]gauge{}
	for name, part := range limits {
		p, err := r.Client.Instrument(ctx, t.app, r.requestOf(part, t))
		if ctx.Err() != nil {
			return nil, err
		}
		if err == nil { // others cannot be counted
			gauges[name] = gauge{part, p}
		}
	}
	if err := r.begin(ctx, t); err != nil {
		return nil, err
	}
	if r.Load != "" || r.Ready != "" {
		for _, g := range gauges {
			if err := g.probe.Reset(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := r.work(ctx, t, 1); err != nil {
		return nil, err
	}
	counts = map[string]float64{}
	for name, g := range gauges {
		v, err := r.read(ctx, g)
		if ctx.Err() != nil {
			return nil, err
		}
		if err == nil && v.Value > 0 {
			counts[name] = v.Value
		}
	}
	return counts, nil
}

// partsOf returns what to count, by the words for it.
func (r *Runner) partsOf(ctx context.Context, t *subject, l request.Limit) (map[string]request.Limit, error) {
	parts := map[string]request.Limit{}
	if l.Metric == systemCalls {
		for _, class := range classes {
			parts[class] = request.Limit{Kind: request.Exact, Metric: systemCalls + ":" + class, Region: l.Region, To: l.To}
		}
		return parts, nil
	}
	sites, err := sites(ctx, r.Client, t, r.unit(l.Region, t))
	for _, id := range sites[:min(len(sites), mostParts)] {
		_, name, _ := strings.Cut(id, ":")
		parts[name] = request.Limit{Kind: request.Exact, Metric: "COUNT", Region: id}
	}
	return parts, err
}

// sites returns the ids of the calls of a unit in its program.
func sites(ctx context.Context, c *client.Client, t *subject, unit string) (ids []string, err error) {
	d, called, err := dumpOf(ctx, c, t, unit)
	if err != nil {
		return nil, err
	}
	defer d.file.Close()
	_, symbol, _ := strings.Cut(unit, ":")
	for _, caller := range d.program.Regions {
		if len(ids) >= mostParts || !d.calls(caller, called.Entry) {
			continue
		}
		s, err := c.FindUnits(ctx, t.app, caller.ID+"/", mostRegions)
		if err != nil {
			return nil, err
		}
		for i := range s.Programs {
			for u := range s.Programs[i].All() {
				if calledAt(u.ID) == symbol {
					ids = append(ids, u.ID)
				}
			}
		}
	}
	return ids, nil
}

// calls reports whether a function calls the one at an address.
func (d *dump) calls(u sir.Region, entry uint64) bool {
	d.text.Reset()
	return slices.ContainsFunc(d.one(u), func(other sir.Region) bool { return other.Entry == entry })
}

// mostRegions limits the regions of one function.
const mostRegions = 1000
