package probes

import (
	"context"
	"time"

	"mirador/mir/translate"
)

// schedule is the goroutine of an active probe that measures or checks its budget at fixed
// times, or its part of the application's clock, if it only delivers.
type schedule struct {
	work *installed
	stop context.CancelFunc
	done chan struct{}
}

// startSchedule starts the goroutine if the probe needs one. The caller holds op.
func (p *Probe) startSchedule(w *installed) {
	measure, send := interval(w.times), pace(w.times)
	p.direct(w)
	if each(w) {
		p.outlet.SetRoom(mostStreamed)
	}
	if !translate.Scheduled(w.times) && w.budget == 0 && w.recording == nil && send >= 0 {
		if send > 0 {
			s := p.app.clock.schedule(p, w, send)
			p.mu.Lock()
			p.schedule = s
			p.mu.Unlock()
		}
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &schedule{work: w, stop: stop, done: make(chan struct{})}
	p.mu.Lock()
	p.schedule = s
	p.mu.Unlock()
	go func() {
		defer close(s.done)
		p.run(ctx, w, measure, send)
	}()
}

// stopSchedule ends the goroutine and waits for it.
func (p *Probe) stopSchedule() {
	p.mu.Lock()
	s := p.schedule
	p.schedule = nil
	p.mu.Unlock()
	if s != nil {
		s.stop()
		<-s.done
		if err := p.keepSamples(s.work, true); err != nil {
			p.complain(context.Background(), "cannot write the measurements to the journal", err)
		}
	}
}

// run measures and delivers until the context ends. It takes the first measurement at once.
func (p *Probe) run(ctx context.Context, w *installed, measure, send time.Duration) {
	sample, stopSample := ticks(measure)
	defer stopSample()
	post, stopPost := ticks(send)
	defer stopPost()
	var every time.Duration
	s := &scales{}
	if w.budget > 0 {
		every = weighEvery
		s.begin(p.spent(w))
	}
	weigh, stopWeighing := ticks(every)
	defer stopWeighing()
	m := sampling{probe: p, w: w, each: send < 0, lasts: duration(w.times)}
	m.chained = m.lasts == measure
	m.begin(ctx)
	records := p.poll(w, send)
	for {
		ended := p.app.processes.nextEnd()
		if w.plan.Outlived(p.app.processes.gone()) {
			p.conclude(ctx, w, send)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-sample:
			m.end(ctx) // of the one before, if both are due
			m.begin(ctx)
		case <-m.due:
			m.end(ctx)
		case <-post:
			p.send(ctx)
		case <-records.due:
			records.next(ctx)
		case <-weigh:
			p.weigh(w, s)
		}
	}
}

// conclude delivers the last value when all measured processes have terminated, and closes
// the destinations. Measuring begins again if another process joins.
func (p *Probe) conclude(ctx context.Context, w *installed, send time.Duration) {
	p.drain(ctx, w)
	if send != 0 && !each(w) {
		p.send(ctx)
	}
	p.mu.Lock()
	p.destination = nil // the next schedule opens it again
	p.mu.Unlock()
	p.outlet.End()
	p.tracers.end()
}

// ticks returns the channel of a ticker; without a period, a channel that never ticks.
func ticks(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// sampling measures at an instant, or from one instant to another.
type sampling struct {
	probe *Probe
	w     *installed
	each  bool          // deliver each measurement
	lasts time.Duration // 0: at an instant
	// chained says that a measurement lasts until the next one begins: the same values end the one and begin
	// the other, so that nothing in between is left out.
	chained bool

	first []translate.Value // at the beginning; nil if none is under way
	due   <-chan time.Time  // when the measurement ends
}

// begin measures. It logs an error and continues: the next measurement may succeed.
func (m *sampling) begin(ctx context.Context) {
	if !translate.Scheduled(m.w.times) {
		return
	}
	vs, err := m.measure(ctx)
	switch {
	case err != nil:
		m.first = nil
		m.probe.complain(ctx, "cannot measure", err)
	case m.lasts == 0:
		m.add(ctx, vs)
	case m.chained:
		first := m.first
		if m.first = vs; first != nil {
			m.add(ctx, translate.Difference(m.w.plan, first, vs))
		}
	default:
		m.first, m.due = vs, time.After(m.lasts)
	}
}

// end completes the measurement that is under way: its value is the difference (MIR 4,
// duration).
func (m *sampling) end(ctx context.Context) {
	if m.due == nil {
		return
	}
	first := m.first
	m.first, m.due = nil, nil
	vs, err := m.measure(ctx)
	if err != nil {
		m.probe.complain(ctx, "cannot measure", err)
		return
	}
	m.add(ctx, translate.Difference(m.w.plan, first, vs))
}

// measure returns the values at this instant, without those of terminated processes.
func (m *sampling) measure(ctx context.Context) ([]translate.Value, error) {
	vs, err := m.probe.query(ctx, m.w)
	return m.w.plan.AtInstant(vs, m.lasts > 0), err
}

func (m *sampling) add(ctx context.Context, vs []translate.Value) {
	m.w.samples.add(vs)
	if err := m.probe.keepSamples(m.w, false); err != nil {
		m.probe.complain(ctx, "cannot write the measurements to the journal", err)
	}
	if m.each {
		m.probe.send(ctx)
	}
}

// send delivers the probe's value, if there are destinations.
func (p *Probe) send(ctx context.Context) {
	p.app.clock.send(ctx, []*Probe{p})
}

func (p *Probe) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		p.app.registry.config.Log.Warn(what, "probe", p.id, "app", p.app.name, "error", err)
	}
}
