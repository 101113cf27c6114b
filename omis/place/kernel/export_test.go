//go:build linux && amd64

package kernel

import (
	"errors"

	"mirador/omis/program"
)

// Sweep takes rows of ended threads out, as is done from time to time.
func (p *Placer) Sweep() error {
	var errs []error
	for _, q := range p.openPools() {
		errs = append(errs, q.sweep())
	}
	return errors.Join(errs...)
}

// SetNops has a placer be told why no uprobe may stand at a nop of five bytes.
func (p *Placer) SetNops(why func() error) { p.nops = why }

// Unread has a trace keep so many records more for a reader.
func Unread(s program.Trail, n int) {
	t := s.(*trail)
	t.store.pool.mu.Lock()
	defer t.store.pool.mu.Unlock()
	t.store.notes.taken = append(t.store.notes.taken, make([]program.Record, n)...)
}
