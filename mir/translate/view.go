package translate

import (
	"cmp"
	"slices"

	"mirador/mir"
	"mirador/omis"
)

// view says for which threads a metric is measured when a thread executes a region (MIR 4). A request
// may name entities of several views. A thread has the value of the last view of this list that has it:
// this view measures it whenever an earlier one would, and at other executions, too.
type view uint8

const (
	executing   view = iota // the thread that executes the region: "?"
	sameProcess             // all threads of its process: "*" of the process "?"
	given                   // named threads, all threads of named processes, or all threads
	views
)

// view returns the view of an entity. The value of a process or a node is that of the threads that
// execute the region.
func (e *entity) view() view {
	switch {
	case e.kind != mir.Thread || e.thread == current:
		return executing
	case e.process == current:
		return sameProcess
	}
	return given
}

// others reports whether threads are measured that do not execute the region.
func (g *Gains) others() bool { return g.any() && !slices.Equal(g.views, []view{executing}) }

// setViews determines the views of a request, and the threads of the view given.
func (g *Gains) setViews(es []entity, processes []omis.Token) Errors {
	if !g.any() {
		return nil
	}
	g.views, g.all = nil, processes
	var other *entity
	for v := range views {
		at := slices.IndexFunc(es, func(e entity) bool { return e.view() == v })
		if at < 0 {
			continue
		}
		g.views = append(g.views, v)
		if v != executing {
			other = &es[at]
		}
	}
	if other == nil {
		return nil
	}
	g.among = amongOf(es)
	return g.readHeld(other)
}

// readHeld makes the monitor read all metrics while it holds the thread that executes the region. It
// refuses those that this would change.
func (g *Gains) readHeld(other *entity) (errs Errors) {
	for i := range g.metrics {
		m := &g.metrics[i]
		switch {
		case m.isShaken():
			errs = append(errs, Errorf(CannotBeDone, other.pos, "thread %q: on a region, %s is measured only for the thread that executes the region: write \"?\". The monitor holds this thread to read what it counts for others, which changes %[2]s", other.thread, m.Name))
		case m.meter != "":
			m.task = byMonitor + m.meter
		}
	}
	return errs
}

// amongOf returns the threads and processes of the view given; none if it has all threads.
func amongOf(es []entity) (among []omis.Token) {
	for _, e := range es {
		switch {
		case e.view() != given:
		case named(e.thread):
			among = append(among, omis.Token(e.thread))
		case named(e.process):
			among = append(among, omis.Token(e.process))
		default:
			return nil
		}
	}
	return among
}

// hasIn reports whether one of the entities has the instance of another one in a later view.
func hasIn(es []entity, of *entity, in *Instance) bool {
	return of.kind == mir.Thread && slices.ContainsFunc(es, func(e entity) bool {
		return e.view() > of.view() && e.covers(cmp.Or(in.within, of.owner), in.Thread)
	})
}
