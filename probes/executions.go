package probes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/probes/deliver"
)

// A probe that delivers every execution of its region, or an event trace, reads the records
// that the monitor keeps (translate.Recorder). The target does not wait for that: where it
// executes the region faster than the records are read, it overwrites the oldest ones, and their
// number is in the next document.

// recording has the state of reading the records of a probe.
type recording struct {
	mu       sync.Mutex
	recorder *translate.Recorder
	lost     int64                 // records lost since the last document; mir.UnknownLoss
	names    map[omis.Token]Traced // of threads
}

// mostRecords is the number of records that are read at a time. A destination has room for as
// many documents.
const mostRecords = 1 << 9

// mostStreamed is the number of documents that wait for a slow reader of the stream.
const mostStreamed = 1 << 13

// The pauses between two readings. A reading is followed by a pause of at least three times its
// duration, so that no probe takes more than a quarter of a processor.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 100 * time.Millisecond
	pauseFactor   = 3
)

// polling reads the records of an active probe.
type polling struct {
	probe *Probe
	w     *installed
	send  time.Duration // as pace returns it
	pause time.Duration
	due   <-chan time.Time // nil if the probe keeps no records

	executed int64 // executions of the region when the aggregate was read last
}

// poll begins to read the records of a probe, if there are any.
func (p *Probe) poll(w *installed, send time.Duration) *polling {
	l := &polling{probe: p, w: w, send: send, pause: shortestPause}
	if w.recording != nil || l.aggregates() {
		l.due = time.After(l.pause)
	}
	return l
}

// aggregates reports whether the aggregate is delivered after each execution of a region.
func (l *polling) aggregates() bool {
	return l.send < 0 && l.w.plan.OnRegion() && !translate.Scheduled(l.w.times) && len(l.w.plan.Functions) > 0
}

// next reads and delivers new records, or the aggregate, and sets the time of the next reading.
func (l *polling) next(ctx context.Context) {
	began := time.Now()
	busy := false
	switch {
	case l.w.recording == nil:
		busy = l.sendAggregate(ctx)
	case l.wanted():
		busy = l.read(ctx)
	case !l.w.plan.Traced: // the ring of an event trace keeps the newest events for a reader to come
		l.forget(ctx)
	}
	if l.pause = min(2*l.pause, longestPause); busy {
		l.pause = max(shortestPause, pauseFactor*time.Since(began))
	}
	if l.send > 0 {
		l.pause = l.send
	}
	l.due = time.After(l.pause)
}

// wanted reports whether the executions in the records have a destination or a reader.
func (l *polling) wanted() bool {
	return l.send != 0 && !l.probe.outlet.Empty() || l.probe.tracers.any()
}

// forget discards the records.
func (l *polling) forget(ctx context.Context) {
	r := l.w.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := l.probe.app.tool.do(ctx, l.w.records().Forget(l.w.handles)); err != nil {
		l.probe.complain(ctx, "cannot discard records", err)
	}
	r.recorder.Lost()
}

// read reads some records and delivers the executions in them. It reports whether there were any records.
func (l *polling) read(ctx context.Context) bool {
	r := l.w.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, err := l.probe.app.tool.request(ctx, l.w.records().Read(l.w.handles, mostRecords))
	var records []translate.Record
	var lost int64
	if err == nil {
		records, lost, err = translate.ReadRecords(reply)
	}
	if err != nil {
		l.probe.complain(ctx, "cannot read records", err)
		return false
	}
	var found []translate.Execution
	if lost > 0 {
		found = r.recorder.Lost()
	}
	found = append(found, r.recorder.Take(records)...)
	if lost > 0 && r.lost >= 0 {
		r.lost += lost
	}
	l.probe.tracers.send(l.traced(ctx, found), lost)
	if l.send != 0 {
		l.deliver(found)
	}
	return len(records) > 0
}

// deliver sends a document for each execution or event. MIR 6 sorts the tuples of a document by
// their entities and metrics, so one document cannot have two values of one thread in their order.
func (l *polling) deliver(found []translate.Execution) {
	r := l.w.recording
	parcels := make([]deliver.Parcel, 0, len(found))
	for i := range found {
		e := &found[i]
		vs := r.recorder.Values(e)
		if len(vs) == 0 && !l.w.plan.Traced {
			continue // of a thread that the request does not name
		}
		d := translate.Document([]translate.Reading{{ProbeID: l.probe.id, Plan: l.w.plan, Values: vs}})
		d.About = l.about(e)
		r.lost = 0
		parcels = append(parcels, deliver.Parcel{To: &l.probe.outlet, Document: d})
	}
	deliver.Send(parcels...)
}

// about returns the event that a document is about and the number of lost records before it; nil if the
// document needs neither.
func (l *polling) about(e *translate.Execution) *mir.Occurrence {
	o := &mir.Occurrence{Lost: l.w.recording.lost}
	if l.w.plan.Traced {
		at := l.probe.app.registry.config.Epoch + e.Time
		o.Event, o.Time, o.Thread = e.What.String(), fmt.Sprintf("%d.%09d", at/1e9, at%1e9), string(e.Thread)
		if e.Goroutine != 0 {
			o.Goroutine = fmt.Sprintf("%#x", e.Goroutine)
		}
	}
	if *o == (mir.Occurrence{}) {
		return nil
	}
	return o
}

// sendAggregate delivers the aggregate if the region was executed since the last time.
func (l *polling) sendAggregate(ctx context.Context) bool {
	if l.probe.outlet.Empty() {
		return false
	}
	vs, err := l.probe.query(ctx, l.w)
	if err != nil {
		l.probe.complain(ctx, "cannot measure", err)
		return false
	}
	executed := l.w.plan.Executions(vs)
	if executed == l.executed {
		return false
	}
	l.executed = executed
	l.probe.send(ctx)
	return true
}

func (w *installed) records() translate.Records { return translate.Records{Plan: w.plan} }

func newRecording(plan *translate.Plan) *recording {
	return &recording{recorder: translate.Records{Plan: plan}.Recorder(), names: make(map[omis.Token]Traced)}
}

// reset forgets what was recorded so far. A probe without records has a nil recording.
func (r *recording) reset(plan *translate.Plan) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder, r.lost = translate.Records{Plan: plan}.Recorder(), 0
}

func (r *recording) follow(plan *translate.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder.Follow(plan)
}

// isRecorded reports whether the probe keeps records.
func (p *Probe) isRecorded() bool {
	_, w := p.now()
	return w.recording != nil
}

// resume activates a probe of a former gateway whose records are lost with that gateway. The
// former programs write to the former trace, so other programs replace them. That happens after the
// former ones are removed, because both would count the executions.
func (p *Probe) resume(ctx context.Context) {
	p.app.op.Lock()
	defer p.app.op.Unlock()
	_, w := p.now()
	if w == nil || !p.isArmed() {
		return
	}
	w.recording.lost = mir.UnknownLoss
	for _, err := range p.app.start(ctx, []*Probe{p}) {
		p.complain(ctx, "a probe of a former gateway does not come back", err)
	}
	if err := p.app.writeDown(); err != nil {
		p.complain(ctx, "cannot write to the journal", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice = "the gateway was killed: executions until it was started again are not delivered, and those at the moment of its start may not be counted"
}

// seed reads the counts so far, and passes them to the recorder: the records continue them.
func (p *Probe) seed(ctx context.Context) {
	_, w := p.now()
	if w.read == "" {
		return
	}
	reply, err := p.app.tool.request(ctx, w.read)
	var counts []translate.Record
	if err == nil && w.plan.Counts() {
		counts, err = w.records().Counts(reply, w.handles)
	}
	if err != nil {
		p.complain(ctx, "cannot read the counts", err)
	}
	w.recording.recorder.Seed(counts)
}

// each reports whether the probe delivers each execution or event, so that its last value is
// already delivered.
func each(w *installed) bool { return w.recording != nil && pace(w.times) < 0 }

// mostDrained limits the readings of the last records.
const mostDrained = 1 << 10

// drain reads the last records of a probe that stops measuring.
func (p *Probe) drain(ctx context.Context, w *installed) {
	l := &polling{probe: p, w: w, send: pace(w.times)}
	if w.recording == nil || !l.wanted() {
		return
	}
	for range mostDrained {
		if !l.read(ctx) {
			return
		}
		time.Sleep(shortestPause) // destinations have limited room
	}
}
