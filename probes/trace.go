package probes

import (
	"context"
	"path"
	"strings"
	"sync"

	"mirador/mir"
	"mirador/mir/translate"
)

// Traced is an event of a trace, with the numbers and names by which users know its process and thread.
type Traced struct {
	PID, TID        int
	Goroutine       uint64 // address of its descriptor, in functions of Go; else 0
	Process, Thread string // names
	Name            string // of the region, or of the metric whose event it is
	What            translate.What
	Time            int64 // nanoseconds of the node's monotonic clock
	Values          []translate.NamedValue
}

// TracedBatch has some events of a trace.
type TracedBatch struct {
	Lost   int64 // records lost before the events
	Events []Traced
}

// tracers are the readers of a probe's event trace.
type tracers struct {
	mu   sync.Mutex
	list []*tracer
}

type tracer struct {
	batches chan TracedBatch
	missed  int64 // events for which there was no room, and lost records before them
}

// waitingBatches is the number of batches that wait for a slow reader.
const waitingBatches = 16

func (t *tracers) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list) > 0
}

// send sends events to all readers. It does not wait for any of them.
func (t *tracers) send(events []Traced, lost int64) {
	if len(events) == 0 && lost == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		select {
		case r.batches <- TracedBatch{Lost: lost + r.missed, Events: events}:
			r.missed = 0
		default:
			r.missed += lost + int64(len(events))
		}
	}
}

func (t *tracers) add() *tracer {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &tracer{batches: make(chan TracedBatch, waitingBatches)}
	t.list = append(t.list, r)
	return r
}

func (t *tracers) remove(gone *tracer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.list {
		if r == gone {
			t.list = append(t.list[:i:i], t.list[i+1:]...)
			close(r.batches)
		}
	}
}

// end closes all readers.
func (t *tracers) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		close(r.batches)
	}
	t.list = nil
}

// Trace returns the events of a probe's trace from now on, after those that the monitor still
// has. The channel is closed by cancel and when the probe ends.
func (r *Registry) Trace(id string) (batches <-chan TracedBatch, cancel func(), err error) {
	p, err := r.Probe(id)
	if err != nil {
		return nil, nil, err
	}
	state, w := p.now()
	switch {
	case w == nil:
		return nil, nil, failf(Conflict, "%s is not installed", id)
	case !w.plan.Traced:
		return nil, nil, failf(Conflict, "%s records no events: its request has no <event/>", id)
	case state == Removed || w.plan.Outlived(p.app.processes.gone()):
		return nil, nil, failf(Conflict, "all processes that %s measured have terminated: it records no events any more", id)
	}
	t := p.tracers.add()
	return t.batches, func() { p.tracers.remove(t) }, nil
}

// traced converts executions to events for the readers of the trace.
func (l *polling) traced(ctx context.Context, found []translate.Execution) []Traced {
	if !l.probe.tracers.any() {
		return nil
	}
	r := l.w.recording
	events := make([]Traced, len(found))
	for i := range found {
		e := &found[i]
		if _, known := r.names[e.Thread]; !known {
			r.nameThreads(ctx, l.probe.app)
		}
		t, known := r.names[e.Thread]
		if !known {
			t = Traced{TID: unknownThread + translate.Number(e.Thread), Thread: string(e.Thread)}
			if process, ok := l.probe.app.processes.find(e.Process); ok {
				t.PID, t.Process = process.PID, path.Base(strings.Join(process.Argv[:min(len(process.Argv), 1)], ""))
			}
			r.names[e.Thread] = t
		}
		t.Goroutine = e.Goroutine
		t.Name, t.What, t.Time, t.Values = l.w.records().NameOf(e), e.What, l.probe.app.registry.config.Epoch+e.Time, l.w.records().Named(e)
		events[i] = t
	}
	return events
}

// unknownThread is greater than every number of a thread. The numbers from here on stand for
// threads that ended before their numbers were asked for.
const unknownThread = 1 << 22

// mostNames limits the names that are remembered.
const mostNames = 10_000

// nameThreads asks the monitor for the names and numbers of the threads.
func (r *recording) nameThreads(ctx context.Context, a *App) {
	s := translate.NewSnapshot(&mir.SnapshotRequest{Named: true}, a.machine())
	reply, err := a.tool.request(ctx, s.Request)
	if err != nil {
		return
	}
	processes, err := s.Processes(reply)
	if err != nil {
		return // the events have tokens in place of names
	}
	if len(r.names) > mostNames {
		clear(r.names)
	}
	for _, p := range processes {
		for _, t := range p.Threads {
			r.names[t.Token] = Traced{PID: p.PID, TID: t.TID, Process: p.Name, Thread: t.Name}
		}
	}
}
