//go:build linux && amd64

package kernel

import (
	"errors"

	"mirador/omis/program"
)

// Sweep frees rows of ended threads, as keepRoom does from time to time.
func (p *Placer) Sweep() error {
	var errs []error
	for _, q := range p.memory.openPools() {
		errs = append(errs, q.sweep())
	}
	return errors.Join(errs...)
}

// SetNops sets the function that reports why no uprobe may be at a nop of five bytes.
func (p *Placer) SetNops(why func() error) { p.uprobes.nops = why }

// Unread adds n unread records to a trace.
func Unread(s program.Trail, n int) {
	t := s.(*trail)
	t.store.pool.mu.Lock()
	defer t.store.pool.mu.Unlock()
	t.store.notes.taken = append(t.store.notes.taken, make([]program.Record, n)...)
}
