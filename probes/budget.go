package probes

import (
	"context"
	"fmt"
	"time"

	"mirador/mir"
	"mirador/mir/translate"
)

// A probe may have a budget: a share of its processes' time. While it takes more it is
// of no use to anybody, since what it measures is mostly itself; so it is deactivated,
// and says so. Whoever wants it all the same activates it again.

const (
	// weighEvery is how often a probe on a budget is looked after, patience how often in
	// a row it may take too much: one window may hold what is rare.
	weighEvery = 250 * time.Millisecond
	patience   = 2
)

// scales weigh a probe on a budget. They belong to the goroutine of the probe.
type scales struct {
	meter
	over int // how often in a row it took too much
}

// weigh is called every weighEvery while a probe is active.
func (p *Probe) weigh(w *installed, s *scales) {
	now := s.read(p.spent(w))
	if !now.tells() || now.Share() <= w.budget {
		s.over = 0
		return
	}
	if s.over++; s.over < patience {
		return
	}
	s.over = 0
	p.app.registry.relieving.Go(func() { p.relieve(w, now) })
}

// relieve deactivates a probe that took too much, unless it has been changed meanwhile.
// It must not run on the goroutine of the probe, which it ends.
func (p *Probe) relieve(w *installed, now window) {
	ctx := context.Background()
	a := p.app
	a.op.Lock()
	defer a.op.Unlock()
	if state, work := p.now(); state != Active || work != w {
		return
	}
	about := ""
	if now.Rough || now.Uncounted {
		about = "roughly "
	}
	notice := fmt.Sprintf("deactivated: it took %s%s of the time of what it measures, more than its budget of %s (%.0f hits a second, %s%.0f ns each); ACTIVATE it to go on",
		about, percent(now.Share()), percent(w.budget), float64(now.Hits)/now.took.Seconds(), about, now.PerHit())
	if err := p.deactivate(ctx); err != nil {
		p.complain(ctx, "cannot deactivate a probe that takes too much", err)
		return
	}
	p.meter.lately(now)
	p.mu.Lock()
	p.notice = notice
	p.mu.Unlock()
	a.registry.config.Log.Warn("a probe took more than its budget", "probe", p.id, "app", a.name, "what", notice)
	if err := a.writeDown(); err != nil {
		p.complain(ctx, "cannot write down that a probe was deactivated", err)
	}
	p.announce(ctx, notice)
}

// announce tells those who listen to a probe what became of it, with its last value.
func (p *Probe) announce(ctx context.Context, notice string) {
	if p.audience.empty() {
		return
	}
	last := &mir.Measurement{ProbeID: p.id}
	if r, err := p.reading(ctx); err == nil {
		last = translate.Document([]translate.Reading{r})
	}
	last.Notice = notice
	p.audience.send(last)
}

// percent is a share as people read it.
func percent(share float64) string { return fmt.Sprintf("%.3g%%", share*100) }
