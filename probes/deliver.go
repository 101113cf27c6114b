package probes

import (
	"context"
	"time"

	"mirador/mir/translate"
)

// delivery is the goroutine of a probe that measures or delivers by the clock.
type delivery struct {
	stop context.CancelFunc
	done chan struct{}
}

// deliver starts the goroutine if the probe needs one. op is held.
func (p *Probe) deliver(w *installed) {
	measure, send := interval(w.times), pace(w.times)
	if w.samples == nil && send == 0 && w.budget == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &delivery{stop: stop, done: make(chan struct{})}
	p.mu.Lock()
	p.delivery = d
	p.mu.Unlock()
	go func() {
		defer close(d.done)
		p.beat(ctx, w, measure, send)
		if err := p.keepSamples(w, true); err != nil {
			p.complain(context.Background(), "cannot write down what was measured", err)
		}
	}()
}

// undeliver ends the goroutine and waits for it.
func (p *Probe) undeliver() {
	p.mu.Lock()
	d := p.delivery
	p.delivery = nil
	p.mu.Unlock()
	if d != nil {
		d.stop()
		<-d.done
	}
}

// beat measures and delivers until the context ends. The first measurement is
// taken at once.
func (p *Probe) beat(ctx context.Context, w *installed, measure, send time.Duration) {
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
	p.sample(ctx, w)
	for {
		ended := p.app.nextEnd()
		if w.plan.Outlived(p.app.gone()) {
			p.conclude(ctx, send)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-sample:
			p.sample(ctx, w)
			if send < 0 {
				p.send(ctx)
			}
		case <-post:
			p.send(ctx)
		case <-weigh:
			p.weigh(w, s)
		}
	}
}

// conclude ends the delivery when all processes that were measured have terminated: the last
// value is delivered once more, and the streams end. It goes on if another process joins.
func (p *Probe) conclude(ctx context.Context, send time.Duration) {
	if send != 0 {
		p.send(ctx)
	}
	p.audience.dismiss()
}

// ticks is a ticker's channel; one that never ticks where there is no time.
func ticks(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// sample measures once. An error is logged and the probe goes on: the next
// measurement may succeed.
func (p *Probe) sample(ctx context.Context, w *installed) {
	if w.samples == nil {
		return
	}
	vs, err := p.query(ctx, w)
	if err != nil {
		p.complain(ctx, "cannot measure", err)
		return
	}
	w.samples.add(vs) // of a process that has terminated there is nothing to measure
	if err := p.keepSamples(w, false); err != nil {
		p.complain(ctx, "cannot write down what was measured", err)
	}
}

// send delivers the probe's value to those who listen, if there are any.
func (p *Probe) send(ctx context.Context) {
	if p.audience.empty() {
		return
	}
	r, err := p.reading(ctx)
	if err != nil {
		p.complain(ctx, "cannot deliver", err)
		return
	}
	p.audience.send(translate.Document([]translate.Reading{r}))
}

func (p *Probe) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		p.app.registry.config.Log.Warn(what, "probe", p.id, "app", p.app.name, "error", err)
	}
}
