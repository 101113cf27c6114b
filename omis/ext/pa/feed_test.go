package pa

import (
	"testing"
	"time"

	"mirador/omis/node"
	"mirador/omis/service"
)

// slowStore is a store whose readers wait.
type slowStore struct {
	entered chan struct{} // a reader waits
	leave   chan struct{}
}

func newSlowStore() *slowStore {
	return &slowStore{make(chan struct{}, 1), make(chan struct{})}
}

func (s *slowStore) wait() {
	s.entered <- struct{}{}
	<-s.leave
}

func (s *slowStore) Rows() ([]service.Row, error) { s.wait(); return nil, nil }
func (s *slowStore) Reset() error                 { s.wait(); return nil }

func (s *slowStore) Take() ([]service.Record, uint64, error) { s.wait(); return nil, 0, nil }

func (s *slowStore) Histograms() ([]service.Histogram, error) { s.wait(); return nil, nil }

// TestActionsDoNotWaitForStores checks that an action on an object returns while the
// object's stores are read. A placement that reads a store may wait for the goroutine that
// owns the process, and that goroutine executes such actions.
func TestActionsDoNotWaitForStores(t *testing.T) {
	o := owner{"p_1", "t_1"}
	now := func() int64 { return 1 }
	c, tm, spread, tr := newCounter(), newTimer(), newTimer(), newTrace(8)
	spread.spread = true
	add := func() { c.add(o, 1) }
	measure := func(t *timer) func() {
		return func() {
			t.start(o, node.StackPlace{SP: 8}, now)
			t.stop(o, node.StackPlace{SP: 8}, 2)
			t.BreakOff("p_1")
		}
	}
	record := func() { tr.add(owner{"p_1", "t_1"}, service.Record{Proc: o.proc, Thread: o.thread}) }
	for _, test := range []struct {
		name string
		cell service.Cell
		act  func()
		read func()
	}{
		{"counter, read", c, add, func() { c.values(byThreads) }},
		{"counter, reset", c, add, func() { c.reset() }},
		{"timer, read", tm, measure(tm), func() { tm.values(byThreads) }},
		{"timer, reset", tm, measure(tm), func() { tm.reset() }},
		{"histogram, read", spread, measure(spread), func() { spread.histogramValues(byThreads, (*row).appendHistogram) }},
		{"trace, read", tr, record, func() { tr.read(8) }},
		{"trace, reset", tr, record, func() { tr.reset() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSlowStore()
			test.cell.Join(s)
			begun(t, s, test.read, test.act)
			begun(t, s, func() { test.cell.Leave(s) }, test.act)
		})
	}
}

// begun checks that act returns while read waits for a store.
func begun(t *testing.T, s *slowStore, read, act func()) {
	t.Helper()
	done, acted := make(chan struct{}), make(chan struct{})
	go func() { read(); close(done) }()
	<-s.entered
	go func() { act(); close(acted) }()
	select {
	case <-acted:
	case <-time.After(10 * time.Second):
		t.Error("the action waits for the store")
	}
	s.leave <- struct{}{}
	<-done
	<-acted
}
