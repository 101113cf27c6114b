package probes

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// lease removes a probe that has not been used for a while, so that a client that died leaves
// nothing in a program. The zero value never ends.
type lease struct {
	mu    sync.Mutex
	term  time.Duration // 0: none
	ends  time.Time
	timer *time.Timer
}

// hold starts or changes the lease; a term of 0 leaves it as it is. The lease begins anew with
// the process of the gateway.
func (p *Probe) hold(term time.Duration) {
	if term <= 0 {
		return
	}
	l := &p.lease
	l.mu.Lock()
	l.term = term
	if l.timer == nil {
		l.timer = time.AfterFunc(term, p.expire)
	}
	l.mu.Unlock()
	p.renew()
}

// renew counts the lease from now on. Every use of the probe calls it.
func (p *Probe) renew() {
	l := &p.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return
	}
	l.ends = time.Now().Add(l.term)
	l.timer.Reset(l.term)
}

// end returns when the lease ends unless the probe is used, the zero time for never.
func (l *lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends
}

func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

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
	p.lease.mu.Lock()
	term, ended := p.lease.term, !time.Now().Before(p.lease.ends)
	p.lease.mu.Unlock()
	if state, _ := p.now(); state == Removed || !ended {
		return
	}
	notice := fmt.Sprintf("removed: nothing has used the probe for %v, its lease", term)
	a.registry.config.Log.Warn("the lease of a probe has ended", "probe", p.id, "app", a.name, "what", notice)
	p.announce(ctx, notice)
	if err := p.remove(ctx); err != nil {
		p.complain(ctx, "cannot remove a probe whose lease has ended", err)
	}
}
