package probes

import (
	"context"
	"fmt"
	"time"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes/deliver"
)

// A probe may have a budget: a share of its processes' time. A probe that takes more mostly
// measures itself, so the gateway deactivates it and reports that in its notice. A request can
// activate it again.

const (
	// weighEvery is the length of the windows in which the share of a probe with a budget is
	// measured. After patience windows in succession that exceed the budget, the probe is
	// deactivated: a single window may contain a rare burst.
	weighEvery = 250 * time.Millisecond
	patience   = 2
)

// scales is the state of comparing a probe's cost with its budget. Only the goroutine of the probe's
// schedule uses it.
type scales struct {
	meter
	over int // windows in succession that exceeded the budget
}

// weigh compares the share of the latest window with the budget. After patience windows that exceed the
// budget it starts relieve. It is called every weighEvery while the probe is active.
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

// relieve deactivates a probe that exceeded its budget, unless it has changed in the meantime.
// It must not run on the goroutine of the probe's schedule, because it ends that goroutine.
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
	a.registry.config.Log.Warn("a probe exceeded its budget", "probe", p.id, "app", a.name, "what", notice)
	if err := a.writeDown(); err != nil {
		p.complain(ctx, "cannot write to the journal that a probe was deactivated", err)
	}
	p.announce(ctx, notice)
}

// announce sends the probe's last value with a notice to its destinations.
func (p *Probe) announce(ctx context.Context, notice string) {
	if p.outlet.Empty() {
		return
	}
	r, err := p.reading(ctx)
	if err != nil {
		deliver.Send(deliver.Parcel{To: &p.outlet, Document: &mir.Measurement{ProbeID: p.id, Notice: notice}})
		return
	}
	last := translate.Document([]translate.Reading{r})
	last.Notice = notice
	deliver.Send(deliver.Parcel{To: &p.outlet, Document: last})
}

// percent formats a share as a percentage.
func percent(share float64) string { return fmt.Sprintf("%.3g%%", share*100) }
