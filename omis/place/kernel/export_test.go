//go:build linux && amd64

package kernel

import (
	"errors"

	"mirador/omis/program"
)

// Sweep frees rows of ended threads, as keepRoom does from time to time if there are many.
func (p *Placer) Sweep() error {
	var errs []error
	for _, q := range p.memory.openPools() {
		q.mu.Lock()
		q.sweepAt = 0 // also if there are few rows, because it was done a moment ago
		q.mu.Unlock()
		errs = append(errs, q.sweep())
	}
	return errors.Join(errs...)
}

// SetNops replaces the test of the kernel that decides whether uprobes may be at nops of five bytes: see
// survey.nops.
func (p *Placer) SetNops(why func() error) { p.uprobes.nops = why }

// Unread adds n unread records to a trace.
func Unread(s program.Trail, n int) {
	t := s.(*trail)
	t.store.pool.mu.Lock()
	defer t.store.pool.mu.Unlock()
	t.store.notes.taken = append(t.store.notes.taken, make([]program.Record, n)...)
}
