//go:build linux && amd64

package kernel

import (
	"mirador/omis/program"
)

var _ program.ManyReader = (*Placer)(nil)

// AppendRows: see program.ManyReader. Stores of one pool that follow each other are read
// with one look at what is new in it.
func (p *Placer) AppendRows(stores []program.Store, rows []program.Row, ends []int) ([]program.Row, []int, error) {
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

// lively remembers of the thread that was asked about last whether it was alive: rows
// that are read together are often of the same.
type lively struct {
	target *target
	thread thread
	was    bool
}

func (l *lively) wasAlive(t *target, k key) bool {
	if th := k.thread(); l.target != t || l.thread != th {
		l.target, l.thread, l.was = t, th, t.wasAlive(th)
	}
	return l.was
}
