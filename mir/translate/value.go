package translate

import (
	"slices"

	"mirador/mir"
	"mirador/omis"
)

// Instance is one entity with a value; a symbol of the request stands for several. Ids are
// empty if the request names no entity of that kind.
type Instance struct {
	Site            string
	Node            string // as spelled in the request
	Process, Thread omis.Token

	level  mir.EntityKind
	within omis.Token // the process of a thread, even if the request does not name it
}

// has reports whether a row belongs to the instance.
func (i *Instance) has(r *row) bool {
	if i.level == mir.Thread {
		return i.Thread == r.thread
	}
	return i.Process == "" || i.Process == r.process
}

// Value is the value of a metric for an entity. Stats.N is 0 if it is not available.
type Value struct {
	Metric   int // index in Plan.Metrics
	Instance Instance
	Stats    Stats
}

// Values reads the reply to Read, in the order of the request: entity by entity and metric by
// metric.
func (p *Plan) Values(reply omis.Reply, h Handles) ([]Value, error) {
	rd, err := p.reading(reply, h)
	if err != nil {
		return nil, err
	}
	return p.values(&rd), nil
}

// Nothing returns the values before any measurement: the named entities, without values.
func (p *Plan) Nothing() []Value {
	vs := p.values(&reading{})
	for i := range vs {
		vs[i].Stats = Stats{}
	}
	return vs
}

func (p *Plan) values(rd *reading) []Value {
	rows := max(len(rd.counts), len(rd.timers), len(rd.cpu), len(rd.threads), len(p.entities))
	vs := make([]Value, 0, rows*len(p.Metrics))
	for i := range p.entities {
		e := &p.entities[i]
		for _, in := range p.instances(e, rd) {
			if hasIn(p.entities, e, &in) {
				continue
			}
			for m := range p.Metrics {
				vs = append(vs, Value{m, in, rd.of(p.Metrics[m], e, &in)})
			}
		}
	}
	return vs
}

// instances lists the entities of a reading that an entity of the request stands for. The
// entities of a symbol are in the order of their tokens.
func (p *Plan) instances(e *entity, rd *reading) []Instance {
	switch e.kind {
	case mir.Process:
		return p.processes(e, rd)
	case mir.Thread:
		return threads(e, rd)
	}
	return []Instance{{Site: e.site, Node: e.node, level: e.kind}}
}

func (p *Plan) processes(e *entity, rd *reading) []Instance {
	var ids []omis.Token
	switch e.process {
	case every:
		for _, s := range p.scopes {
			if !p.OnRegion() || p.Measures(s.process) || (Libraries{p}).Away(s.process) {
				ids = append(ids, s.process)
			}
		}
	case current:
		for _, rows := range rd.ofRegion(executing) {
			for _, r := range rows {
				ids = append(ids, r.process)
			}
		}
	default:
		ids = append(ids, omis.Token(e.process))
	}
	var found []Instance
	for _, id := range sorted(ids) {
		found = append(found, Instance{Site: e.site, Node: e.node, Process: id, level: mir.Process, within: id})
	}
	return found
}

// ofRegion returns the rows of threads that have executed the region, and of those that were measured then.
func (rd *reading) ofRegion(v view) [][]row {
	all := [][]row{rd.counts, rd.timers, rd.cpu}
	for of, rows := range rd.gains {
		if of.view == v {
			all = append(all, rows)
		}
	}
	return all
}

// Measures reports whether the region is measured in a process.
func (p *Plan) Measures(process omis.Token) bool {
	return slices.ContainsFunc(p.Places, func(pl Place) bool { return slices.Contains(pl.Processes, process) })
}

// threads lists the threads with measurements, and for "*" also the other live threads; for the process "?"
// those of processes that have executed the region. It lists a named thread in any case.
func threads(e *entity, rd *reading) []Instance {
	if named(e.thread) {
		in := Instance{Site: e.site, Node: e.node, Thread: omis.Token(e.thread), level: mir.Thread}
		switch {
		case named(e.process):
			in.Process = omis.Token(e.process)
		case e.process != "":
			in.Process = e.owner
		}
		return []Instance{in}
	}
	rows := rd.ofRegion(e.view())
	for _, of := range rd.events {
		rows = append(rows, of)
	}
	if e.thread == every {
		rows = append(rows, rd.live(e.process == current, rows))
	}
	found := make([]Instance, 0, len(rd.counts)+len(rd.timers)+len(rd.cpu))
	for _, rs := range rows {
		for i := range rs {
			if r := &rs[i]; e.covers(r.process, r.thread) {
				found = append(found, Instance{Site: e.site, Node: e.node, Thread: r.thread, level: mir.Thread, within: r.process})
			}
		}
	}
	slices.SortFunc(found, func(a, b Instance) int {
		if a.within != b.within {
			return compare(a.within, b.within)
		}
		return compare(a.Thread, b.Thread)
	})
	found = slices.Compact(found)
	for i := range found {
		if e.process != "" {
			found[i].Process = found[i].within
		}
	}
	return found
}

// live returns the live threads, or those of processes that have one of the rows.
func (rd *reading) live(executed bool, rows [][]row) []row {
	if !executed {
		return rd.threads
	}
	procs := make(map[omis.Token]bool)
	for _, rs := range rows {
		for i := range rs {
			procs[rs[i].process] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rd.threads), func(r row) bool { return !procs[r.process] })
}

func sorted(ids []omis.Token) []omis.Token {
	slices.SortFunc(ids, compare)
	return slices.Compact(ids)
}

func compare(a, b omis.Token) int {
	switch {
	case a == b:
		return 0
	case Before(a, b):
		return -1
	}
	return 1
}
