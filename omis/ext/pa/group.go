package pa

import (
	"mirador/omis"
	"mirador/omis/service"
)

// A timer with a source, or with a clock of the kernel, can measure a group of threads: whichever thread executes a region,
// an interval is what the source gained for each thread of the group meanwhile. The interval is on
// the stack of the thread that executes the region; the values are in the rows of the group. A
// thread that begins during the interval had 0 at its beginning, and a thread that has ended is
// not measured.

type group struct {
	among map[omis.Token]bool // threads, and processes with all their threads; empty: all
	own   bool                // those of the process whose thread executes the region, instead
}

// mostWide bounds the open intervals of a thread, each of which has a value for every thread of
// the group.
const mostWide = 64

var _ service.Wide = (*timer)(nil)

// IsWide implements service.Wide.
func (t *timer) IsWide() bool { return t.group != nil }

// values returns what the source, or the clock, shows for the live threads of the group.
func (g *group) values(t *timer, e *service.Occurrence) (map[owner]int64, error) {
	if e.Threads == nil {
		return nil, omis.Errorf(omis.UnsupportedService, "the threads of a process are not known at this event")
	}
	if t.source == nil {
		return g.counts(t, e)
	}
	shown := make(map[owner]int64)
	if err := t.source.shows(shown, nil); err != nil {
		return nil, err
	}
	values := make(map[owner]int64)
	for proc := range g.procs(e, shown) {
		for _, thread := range e.Threads(proc) {
			if o := (owner{proc, thread}); g.has(o) {
				values[o] = shown[o]
			}
		}
	}
	return values, nil
}

// procs returns the processes that may have threads of the group. An empty group has those in which the source has
// rows.
func (g *group) procs(e *service.Occurrence, shown map[owner]int64) map[omis.Token]bool {
	all := map[omis.Token]bool{e.Proc: true}
	if g.own {
		return all
	}
	for o := range shown {
		all[o.proc] = true
	}
	for token := range g.among {
		if token.Class() == omis.ClassProcess {
			all[token] = true
		} else if proc, _, err := e.ThreadInfo(token, 0); err == nil {
			all[proc] = true
		}
	}
	return all
}

func (g *group) has(o owner) bool { return len(g.among) == 0 || g.among[o.thread] || g.among[o.proc] }

func (g *group) start(t *timer, e *service.Occurrence) error {
	values, err := g.values(t, e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(owner{e.Proc, e.Thread})
	if len(r.open) >= mostWide {
		r.unfinished++
		return nil
	}
	skipped := r.skipped
	r.start(&r.stack, e.At.SP, func() int64 { return 0 })
	if r.skipped > skipped { // the threads of the group are not measured this time
		r.skipped = skipped
		for o := range values {
			t.of(o).skipped++
		}
	}
	if n := len(r.open); n > 0 && r.open[n-1].wide == nil {
		r.open[n-1].wide = values
	}
	return nil
}

func (g *group) stop(t *timer, e *service.Occurrence) error {
	e.Group = nil
	values, err := g.values(t, e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byThread[owner{e.Proc, e.Thread}]
	if r == nil {
		return nil
	}
	begun, ok := r.pop(&r.stack, e.At.SP)
	if !ok {
		return nil
	}
	for o, v := range values {
		if gained := v - begun.wide[o]; t.of(o).ended(gained) {
			e.Group = append(e.Group, service.OfThread{Proc: o.proc, Thread: o.thread, Value: gained})
		}
	}
	return nil
}

// take measures what the source shows.
func (g *group) take(t *timer, e *service.Occurrence) error {
	e.Group = nil
	values, err := g.values(t, e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, v := range values {
		v = max(v, 0)
		t.of(o).measured(uint64(v))
		e.Group = append(e.Group, service.OfThread{Proc: o.proc, Thread: o.thread, Value: v})
	}
	return nil
}
