//go:build linux

package machine

import (
	"errors"
	"sync"
	"time"
)

// OMIS 8.1.1: rates are averaged over one to fifteen seconds. This package averages over
// the last five seconds, or less if the sampler has not run that long.
const (
	least  = time.Second
	window = 5 * time.Second
	rest   = 15 * time.Second // time without a question after which the sampler ends
)

// source is a set of counters that only grow.
type source interface {
	read() ([]uint64, error)
	Close() error
}

var errClosed = errors.New("the node is being closed")

// averager turns counters into rates. It opens its source and runs its goroutine only
// while callers ask for rates.
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

// sampler is the state of a running averager; the averager's lock guards it.
type sampler struct {
	source
	samples []sample // of the last seconds, oldest first
	asked   time.Time
}

type sample struct {
	at       time.Time
	counters []uint64
}

// rates returns the growth of each counter per second. It takes a second if no sampler
// was running.
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

// ask starts the sampler if necessary. It returns the time until there are enough samples
// for an average.
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

// sample adds a sample and removes old ones; it ends the sampler if no caller has asked
// for a while.
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
		return true // the next caller of rates gets the error
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

// baseline returns the youngest sample that is at least as old as the window, or else the
// oldest sample.
func (s *sampler) baseline(now time.Time) sample {
	base := s.samples[0]
	for _, older := range s.samples {
		if now.Sub(older.at) >= window {
			base = older
		}
	}
	return base
}

// since returns the growth per second from an earlier sample. A counter that decreased
// was reset: its whole value has grown since.
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
