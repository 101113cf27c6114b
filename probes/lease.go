package probes

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// lease ends what has not been used for a while, so that a client that died leaves nothing
// behind. The zero value never ends.
type lease struct {
	mu    sync.Mutex
	term  time.Duration // 0: none
	ends  time.Time
	timer *time.Timer
}

// hold starts or changes the lease; a term of 0 leaves it as it is. expire is called when the
// lease ends. The lease begins anew with the process of the gateway.
func (l *lease) hold(term time.Duration, expire func()) {
	if term <= 0 {
		return
	}
	l.mu.Lock()
	l.term = term
	if l.timer == nil {
		l.timer = time.AfterFunc(term, expire)
	}
	l.mu.Unlock()
	l.renew()
}

// renew counts the lease from now on.
func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return
	}
	l.ends = time.Now().Add(l.term)
	l.timer.Reset(l.term)
}

// end returns when the lease ends unless it is renewed, the zero time for never.
func (l *lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends
}

// over reports whether the lease has ended, and returns its term.
func (l *lease) over() (term time.Duration, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term, l.term > 0 && !time.Now().Before(l.ends)
}

// stop ends the lease without a call of expire.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.ends = 0, time.Time{}
	if l.timer != nil {
		l.timer.Stop()
	}
}

// hold starts or changes the lease of the probe; a term of 0 leaves it as it is.
func (p *Probe) hold(term time.Duration) { p.lease.hold(term, p.expire) }

// renew counts the lease from now on. Every use of the probe calls it.
func (p *Probe) renew() { p.lease.renew() }

// expire removes the probe, unless it was used in the meantime. A reader of its stream uses
// it all the time.
func (p *Probe) expire() {
	if p.outlet.HasReaders() {
		p.renew()
		return
	}
	ctx := context.Background()
	a := p.app
	a.op.Lock()
	defer a.op.Unlock()
	term, ended := p.lease.over()
	if state, _ := p.now(); state == Removed || !ended {
		return
	}
	notice := fmt.Sprintf("removed: nothing has used the probe for %v, its lease", term)
	a.registry.config.Log.Warn("the lease of a probe has ended", "probe", p.id, "app", a.name, "what", notice)
	p.announce(ctx, notice)
	if err := p.remove(ctx); err != nil {
		p.complain(ctx, "cannot remove a probe whose lease has ended", err)
	}
	if err := a.loads.watch(ctx); err != nil {
		p.complain(ctx, "cannot end the watch for libraries", err)
	}
}
