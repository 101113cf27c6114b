//go:build linux && amd64

package linux

import (
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/sched"
	"mirador/omis/node"
)

// scheduling detects that threads get and lose processors. No thread is traced or held: the
// thread has continued when its event is reported. The observer exists while there are
// watches.
type scheduling struct {
	node *Node

	changing sync.Mutex // held while watches are set and cancelled
	observer *sched.Observer
	watching map[int]sched.Kind // what the observer observes
	stop     chan struct{}
	stopped  sync.WaitGroup

	mu      sync.Mutex // held while handlers run
	watches []*watch
	threads map[int]omis.ProcID
}

// refreshEvery is the interval after which a new thread is observed.
const refreshEvery = 50 * time.Millisecond

var schedulingKinds = map[sched.Kind]node.EventKind{
	sched.Scheduled:   node.EventScheduled,
	sched.Descheduled: node.EventDescheduled,
	sched.Blocked:     node.EventBlocked,
	sched.BlockedOnIO: node.EventBlockedOnIO,
	sched.Unblocked:   node.EventUnblocked,
}

func kindOf(event node.EventKind) sched.Kind {
	for kind, e := range schedulingKinds {
		if e == event {
			return kind
		}
	}
	return 0
}

// watch begins a watch. It calls the observer without holding mu, which the observer's handler
// locks.
func (s *scheduling) watch(w *watch) (cancel func() error, err error) {
	if err := proc.Alive(w.Proc); err != nil {
		return nil, err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.observer == nil {
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.watches = append(s.watches, w)
	s.mu.Unlock()
	if err := s.refresh(); err != nil {
		s.drop(w)
		return nil, err
	}
	return func() error {
		s.changing.Lock()
		defer s.changing.Unlock()
		return s.drop(w)
	}, nil
}

func (s *scheduling) begin() error {
	observer, err := sched.Open(s.tell)
	if err != nil {
		return err
	}
	s.observer, s.stop = observer, make(chan struct{})
	s.watching = make(map[int]sched.Kind)
	stop := s.stop
	s.stopped.Go(func() { s.keepUp(stop) })
	return nil
}

// keepUp checks for new threads regularly, because none is traced.
func (s *scheduling) keepUp(stop chan struct{}) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if s.changing.TryLock() {
				// The next watch returns the error.
				_ = s.refresh()
				s.changing.Unlock()
			}
		}
	}
}

// refresh makes the observer observe exactly the threads that are watched.
func (s *scheduling) refresh() error {
	if s.observer == nil {
		return nil
	}
	s.mu.Lock()
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	wanted := make(map[int]sched.Kind)
	threads := make(map[int]omis.ProcID)
	for _, w := range watches {
		tids, err := s.node.Threads(w.Proc)
		if err != nil {
			continue // it has ended
		}
		for _, tid := range tids {
			if len(w.Threads) == 0 || slices.Contains(w.Threads, tid) {
				wanted[tid] |= kindOf(w.Event)
				threads[tid] = w.Proc
			}
		}
	}
	s.mu.Lock()
	s.threads = threads
	s.mu.Unlock()
	return s.observe(wanted)
}

func (s *scheduling) observe(wanted map[int]sched.Kind) error {
	for tid := range s.watching {
		if wanted[tid] == 0 {
			if err := s.observer.Watch(tid, 0); err != nil {
				return err
			}
			delete(s.watching, tid)
		}
	}
	for tid, kinds := range wanted {
		if s.watching[tid] == kinds {
			continue
		}
		if err := s.observer.Watch(tid, kinds); err != nil {
			return err
		}
		s.watching[tid] = kinds
	}
	return nil
}

// drop ends a watch, and with the last one the observer.
func (s *scheduling) drop(w *watch) error {
	s.mu.Lock()
	s.watches = slices.DeleteFunc(s.watches, func(other *watch) bool { return other == w })
	left := len(s.watches)
	s.mu.Unlock()
	if left > 0 || s.observer == nil {
		return s.refresh()
	}
	close(s.stop)
	err := s.observer.Close()
	s.observer = nil
	return err
}

// tell is called by the observer for each event.
func (s *scheduling) tell(e sched.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.threads[e.TID]
	if !known {
		return
	}
	late := s.node.monotonic() - e.Time
	h := node.Hit{Proc: p, TID: e.TID, Time: s.node.Now() - late, Now: s.node.Now, Hold: holdNothing}
	for _, w := range s.watches {
		if w.Proc == p && schedulingKinds[e.Kind] == w.Event && (len(w.Threads) == 0 || slices.Contains(w.Threads, e.TID)) {
			w.handle(&h)
		}
	}
}

// holdNothing is Hit.Hold for events that hold no thread.
func holdNothing() (release func()) { return func() {} }

// close ends all watches.
func (s *scheduling) close() {
	s.changing.Lock()
	if s.observer != nil {
		close(s.stop)
		s.observer.Close()
		s.observer = nil
	}
	s.changing.Unlock()
	s.stopped.Wait()
}
