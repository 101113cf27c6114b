package measure

import (
	"context"
	"sync"
	"time"
)

// reminder tells the user, once in a gate, that a program has not ended.
type reminder struct{ once sync.Once }

// set lets the user be told after ten seconds, or earlier if the gate has little time.
func (m *reminder) set(ctx context.Context, t *subject, warn func(format string, args ...any)) *time.Timer {
	after := 10 * time.Second
	if end, ok := ctx.Deadline(); ok {
		after = min(after, time.Until(end)/10)
	}
	return time.AfterFunc(after, func() {
		m.once.Do(func() {
			warn("%s (process %d) has not ended yet: the gate waits for that. If it is a server, interrupt the gate and measure a time, with --for 30s, or the time of a --load", t.name, t.pid)
		})
	})
}
