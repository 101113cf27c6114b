//go:build linux

package machine

import (
	"errors"
	"sync"
	"time"
)

// OMIS 8.1.1: rates are averaged over one to fifteen seconds. A rate here is that
// of the last five seconds, of less where nobody asked before.
const (
	least  = time.Second
	window = 5 * time.Second
	rest   = 15 * time.Second // without a question: the sampler ends
)

// source is a number of counters that only grow.
type source interface {
	read() ([]uint64, error)
	Close() error
}

var errClosed = errors.New("the node is being closed")

// averager turns counters into rates. Its source is open, and its goroutine
// runs, only while somebody asks.
type averager struct {
	open func() (source, error)
	stop chan struct{} // closed by close

	mu      sync.Mutex
	closed  bool
	running *sampler
	ended   sync.WaitGroup
}

func newAverager(open func() (source, error)) *averager {
	return &averager{open: open, stop: make(chan struct{})}
}

// sampler is the state of an averager that runs; the averager's lock guards it.
type sampler struct {
	source
	samples []sample // of the last seconds, the oldest first
	asked   time.Time
}

type sample struct {
	at       time.Time
	counters []uint64
}

// rates returns how much each counter grows in a second. It takes a second when
// nobody has asked for a while.
func (a *averager) rates() ([]float64, error) {
	s, wait, err := a.ask()
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-a.stop:
			return nil, errClosed
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errClosed
	}
	now, err := s.take()
	if err != nil {
		return nil, err
	}
	return now.since(s.baseline(now.at)), nil
}

// ask makes sure that the sampler runs; wait is how long it takes until there is
// enough to average over.
func (a *averager) ask() (s *sampler, wait time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, 0, errClosed
	}
	if a.running == nil {
		if err := a.start(); err != nil {
			return nil, 0, err
		}
	}
	s = a.running
	s.asked = time.Now()
	return s, least - time.Since(s.samples[0].at), nil
}

func (a *averager) start() error {
	src, err := a.open()
	if err != nil {
		return err
	}
	s := &sampler{source: src}
	first, err := s.take()
	if err != nil {
		src.Close()
		return err
	}
	s.samples = []sample{first}
	a.running = s
	a.ended.Go(func() { a.run(s) })
	return nil
}

func (a *averager) run(s *sampler) {
	ticks := time.NewTicker(least)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if a.sample(s) {
				continue
			}
		case <-a.stop:
			a.end(s)
		}
		return
	}
}

// sample adds a sample and forgets the old ones; it ends the sampler when nobody
// asked for long.
func (a *averager) sample(s *sampler) (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(s.asked) > rest {
		a.running = nil
		s.Close()
		return false
	}
	now, err := s.take()
	if err != nil {
		return true // whoever asks is told
	}
	s.samples = append(s.samples, now)
	for len(s.samples) > 1 && now.at.Sub(s.samples[1].at) >= window {
		s.samples = s.samples[1:]
	}
	return true
}

func (a *averager) end(s *sampler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = nil
	s.Close()
}

func (a *averager) close() {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.stop)
	}
	a.mu.Unlock()
	a.ended.Wait()
}

func (s *sampler) take() (sample, error) {
	counters, err := s.read()
	return sample{time.Now(), counters}, err
}

// baseline is the youngest sample that is a whole window old, else the oldest.
func (s *sampler) baseline(now time.Time) sample {
	base := s.samples[0]
	for _, older := range s.samples {
		if now.Sub(older.at) >= window {
			base = older
		}
	}
	return base
}

// since returns the growth per second from an earlier sample. A counter that
// shrank was reset: what it shows has come since.
func (s sample) since(base sample) []float64 {
	elapsed := s.at.Sub(base.at).Seconds()
	rates := make([]float64, len(s.counters))
	for i, n := range s.counters {
		if n >= base.counters[i] {
			n -= base.counters[i]
		}
		rates[i] = float64(n) / elapsed
	}
	return rates
}
