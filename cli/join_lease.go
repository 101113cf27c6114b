package cli

import (
	"fmt"
	"sync"
	"time"

	"mirador/cli/replies"
	"mirador/omis"
	"mirador/omis/engine"
)

// lease limits the time that objects stay stopped by a tool that neither sends requests nor reads
// its replies. A tool has no connection between its requests, so the lease is the only way to
// detect that a tool has crashed.
type lease struct {
	tool  *engine.Tool
	log   *replies.Log
	after time.Duration

	// Requests under way and connected streams hold inUse for reading. The lease therefore cannot
	// expire during a request, and never continues what a returning tool has just stopped.
	inUse sync.RWMutex

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

func newLease(tool *engine.Tool, log *replies.Log, after time.Duration) *lease {
	l := &lease{tool: tool, log: log, after: after}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(after, l.expire)
	return l
}

// use keeps the lease from expiring until done is called; done starts the time anew. A nil lease never expires.
func (l *lease) use() (done func()) {
	if l == nil {
		return func() {}
	}
	l.inUse.RLock()
	return func() {
		l.inUse.RUnlock()
		l.renew()
	}
}

func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.timer.Reset(l.after)
	}
}

func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.timer.Stop()
}

// expire continues what the tool has stopped, and starts the time anew, because the tool's
// conditional requests may stop more.
func (l *lease) expire() {
	defer l.renew()
	if !l.inUse.TryLock() {
		return
	}
	defer l.inUse.Unlock()
	goesOn, err := l.tool.LetGo()
	if len(goesOn) > 0 {
		l.log.Add(omis.Reply{{{Objects: goesOn, Status: omis.UnspecifiedError, Msg: fmt.Sprintf(
			"objects that this tool had stopped or suspended continue: it sent no request and read no replies for %v (serve --lease)", l.after)}}})
	}
	if err != nil {
		l.log.Add(omis.Reply{{{Objects: goesOn, Status: omis.OSError, Msg: err.Error()}}})
	}
}

// endLeases ends all leases, so that none expires while the monitor closes.
func (t *tools) endLeases() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leases {
		l.end()
	}
}
