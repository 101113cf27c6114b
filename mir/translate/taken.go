package translate

import (
	"maps"
	"slices"

	"mirador/omis"
)

// What is measured for a group of threads whenever any thread executes the region is recorded
// together: a record of the thread that executes it, which says how many values follow, and a record of
// each thread of the group with its value.

// OfThread is a value of a metric of a thread of a group.
type OfThread struct {
	Metric          int
	Process, Thread omis.Token
	Value           uint64

	view view
}

// taken has values of an execution.
type taken struct {
	own   map[int]uint64
	group []OfThread
}

func (t *taken) any() bool { return len(t.own)+len(t.group) > 0 }

func (t *taken) clear() {
	clear(t.own)
	t.group = nil
}

func (t *taken) clone() taken { return taken{maps.Clone(t.own), t.group} }

// add adds the values at the beginning of an execution to those at its end.
func (t *taken) add(begun taken) {
	maps.Copy(t.own, begun.own)
	t.group = slices.Concat(begun.group, t.group)
}

// incoming collects the values of a group. If some of their records are lost, it drops all: the next
// document says so.
type incoming struct {
	by      *recordedThread // executes the region
	awaited int64           // number of values that follow
	values  []OfThread
}

// value takes the value of a thread of a group.
func (g *incoming) value(metric int, of view, rec *Record) {
	if g.awaited == 0 {
		return
	}
	g.values = append(g.values, OfThread{metric, rec.Process, rec.Thread, uint64(max(rec.Value, 0)), of})
	if g.awaited--; g.awaited == 0 {
		g.by.pending.group = append(g.by.pending.group, g.values...)
	}
}

// seen returns the rows of a metric in a view: of the thread that executed the region, or of a group.
func (e *Execution) seen(metric int, of view) (list []row) {
	if v, ok := e.Measured[metric]; ok && of == executing {
		list = append(list, row{process: e.Process, thread: e.Thread, stats: single(v)})
	}
	for _, v := range e.Group {
		if v.Metric == metric && v.view == of {
			list = append(list, row{process: v.Process, thread: v.Thread, stats: single(v.Value)})
		}
	}
	return list
}
