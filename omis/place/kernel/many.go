//go:build linux && amd64

package kernel

import (
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

var _ program.ManyReader = (*Placer)(nil)

// AppendRows: see program.ManyReader. Consecutive stores of one pool are read under one lock.
func (*Placer) AppendRows(stores []program.Store, rows []program.Row, ends []int) ([]program.Row, []int, error) {
	var last lively
	for from := 0; from < len(stores); {
		q := stores[from].(*store).pool
		q.mu.Lock()
		q.discover()
		for ; from < len(stores) && stores[from].(*store).pool == q; from++ {
			var err error
			if rows, err = stores[from].(*store).append(rows, &last); err != nil {
				q.mu.Unlock()
				return rows, ends, err
			}
			ends = append(ends, len(rows))
		}
		q.mu.Unlock()
	}
	return rows, ends, nil
}

// lively caches the last answer of wasAlive: consecutive rows are often of the same thread.
type lively struct {
	target *target
	thread code.Thread
	was    bool
}

func (l *lively) wasAlive(t *target, k code.Key) bool {
	if th := k.Thread(); l.target != t || l.thread != th {
		l.target, l.thread, l.was = t, th, t.wasAlive(th)
	}
	return l.was
}
