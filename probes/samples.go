package probes

import (
	"sync"

	"mirador/mir/translate"
)

// samples sums up what a probe measured by the clock.
type samples struct {
	mu  sync.Mutex
	all []translate.Value
}

// add takes the values of one measurement.
func (s *samples) add(vs []translate.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = translate.Accumulate(s.all, vs)
}

func (s *samples) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

func (s *samples) values() []translate.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]translate.Value(nil), s.all...)
}
