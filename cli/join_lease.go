package cli

import (
	"fmt"
	"sync"
	"time"

	"mirador/cli/replies"
	"mirador/omis"
	"mirador/omis/engine"
)

// lease is how long what a tool has stopped may stay stopped while the tool neither sends
// requests nor reads its replies. Nobody could know that a tool has crashed otherwise, since
// it has no connection between its requests.
type lease struct {
	tool  *engine.Tool
	log   *replies.Log
	after time.Duration

	// inUse is held shared by requests under way and connected streams. So what a tool that
	// comes back stops is not mistaken for what it had left behind.
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

// use keeps the lease until done is called, and begins it anew there. A nil lease is none.
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

// expire lets go what the tool has stopped, and begins the lease anew: its conditional
// requests may stop more.
func (l *lease) expire() {
	defer l.renew()
	if !l.inUse.TryLock() {
		return
	}
	defer l.inUse.Unlock()
	goesOn, err := l.tool.LetGo()
	if len(goesOn) > 0 {
		l.log.Add(omis.Reply{{{Objects: goesOn, Status: omis.UnspecifiedError, Msg: fmt.Sprintf(
			"what this tool had stopped and suspended goes on: it sent no request and read no replies for %v (serve --lease)", l.after)}}})
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
