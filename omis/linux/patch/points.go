//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"
	"slices"

	"mirador/omis/node"
)

// Results returns, for each patch of a committed batch, the point or the error.
func (b *Batch) Results() ([]*Point, []error) {
	for _, c := range b.changes {
		for _, i := range c.fresh {
			if b.errs[i] == nil {
				b.errs[i] = c.err
			}
		}
	}
	for i, err := range b.errs {
		if err != nil {
			b.points[i] = nil
		}
	}
	return b.points, b.errs
}

// Err tells why a part of a batch could not be removed. A part that no longer exists is no error.
func (b *Batch) Err() error {
	for _, c := range b.changes {
		if c.err != nil && (c.former == nil || !c.former.gone) {
			return fmt.Errorf("the code at %#x cannot be taken away: %w", c.Addr, c.err)
		}
	}
	return nil
}

// errGone reports that a point's program does not exist any more.
var errGone = errors.New("the process has ended, or executes another program")

// SetActive implements node.Patched.
func (p *Point) SetActive(on bool) error {
	var b [1]byte
	if on {
		b[0] = 1
	}
	if n, err := p.site.memory.WriteAt(b[:], int64(p.change)); n < len(b) || err != nil {
		return errGone
	}
	return nil
}

// WithdrawAll is Withdraw for all points.
func (s *Site) WithdrawAll() *Batch {
	var all []*Point
	for _, p := range s.places {
		all = append(all, p.points...)
	}
	return s.Withdraw(all)
}

// Covers implements node.Patched.
func (p *Point) Covers(addr uint64) bool {
	p.site.mu.RLock()
	defer p.site.mu.RUnlock()
	if addr == p.patch.Addr {
		addr = p.at
	}
	return p.placeAt(addr) != nil
}

// Exclusive implements node.Patched.
func (p *Point) Exclusive() string {
	p.site.mu.RLock()
	defer p.site.mu.RUnlock()
	if at := p.placeAt(p.at); at != nil {
		return at.exclusive
	}
	return ""
}

// Misses implements node.Patched.
func (p *Point) Misses() string {
	if p.late {
		return lateNote
	}
	return ""
}

// placeAt returns the point's place if it displaces an address, or nil. The caller must hold the
// lock of the site.
func (p *Point) placeAt(addr uint64) *place {
	for _, other := range p.site.covering(addr, addr+1) {
		if slices.Contains(other.points, p) {
			return other
		}
	}
	return nil
}

// Lingers implements node.Patched.
func (p *Point) Lingers() bool { return p.site.Lingers([]*Point{p}) }

// Withdraw prepares the removal of points, and ignores points that do not exist any more.
func (s *Site) Withdraw(points []*Point) *Batch {
	b := &Batch{site: s}
	away := make(map[*Point]bool, len(points))
	for _, p := range points {
		away[p] = true
	}
	isAway := func(p *Point) bool { return away[p] }
	for _, p := range s.places {
		before := len(b.removed)
		for _, point := range p.points {
			if away[point] {
				b.removed = append(b.removed, point)
			}
		}
		if len(b.removed) == before {
			continue
		}
		c := &change{former: p, Window: p.Window, exclusive: p.exclusive, points: slices.DeleteFunc(slices.Clone(p.points), isAway)}
		b.changes = append(b.changes, c)
		if len(c.points) > 0 {
			c.err = b.build(c)
		}
	}
	return b
}

// Silence turns off the points that the batch will remove.
func (b *Batch) Silence() {
	for _, p := range b.removed {
		_ = p.SetActive(false) // fails only if the process has ended
	}
}

// Void reports whether the batch changes nothing.
func (b *Batch) Void() bool { return len(b.changes) == 0 }

// Stub is the code of a place that was removed or replaced.
type Stub struct{ place *place }

// Contains reports whether an address is in the stub.
func (s Stub) Contains(pc uint64) bool { return s.place.block.contains(pc) }

// Lingers reports whether a thread may still be in the code of removed points.
func (s *Site) Lingers(points []*Point) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	away := make(map[*Point]bool, len(points))
	for _, p := range points {
		away[p] = true
	}
	return slices.ContainsFunc(s.retired, func(p *place) bool {
		return !p.gone && slices.ContainsFunc(p.points, func(q *Point) bool { return away[q] })
	})
}

// Retired reports whether there are stubs to which no jump leads any more.
func (s *Site) Retired() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.retired, func(p *place) bool { return !p.gone })
}

// Inside reports whether an address is in a stub to which no jump leads any more.
func (s *Site) Inside(pc uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.stubAt(pc)
	return p != nil && slices.Contains(s.retired, p)
}

// Reclaim finds the stubs that no thread can be in any more: no thread is stopped in them or has an
// address in them on its stack, as occupied reports. Tidy frees them, which takes longer and can
// wait until the process runs again.
func (s *Site) Reclaim(occupied func(Stub) bool) {
	var kept []*place
	for _, p := range s.retired {
		// A jump that is gone may return, so its stub is kept.
		if p.gone || occupied(Stub{p}) {
			kept = append(kept, p)
			continue
		}
		s.unused = append(s.unused, p)
	}
	s.note(s.arenas, slices.Clone(s.places), kept)
}

// Tidy frees the stubs that Reclaim found, and each switch with the last stub that reads it.
// Several stubs may read a switch, one for each time that its place was rebuilt. An earlier
// monitor's stubs have separate points.
func (s *Site) Tidy() {
	stubs := make(map[uint64]int) // number of unused stubs, by switch
	for _, p := range slices.Concat(s.retired, s.unused) {
		for _, point := range p.points {
			stubs[point.change]++
		}
	}
	for _, p := range s.unused {
		s.discard(p)
		var gone []*Point
		for _, point := range p.points {
			if stubs[point.change]--; stubs[point.change] == 0 && !s.reads(p, point.change) {
				gone = append(gone, point)
			}
		}
		s.releaseAll(gone)
	}
	s.unused = nil
}

// reads reports whether a place that replaced former reads a switch.
func (s *Site) reads(former *place, change uint64) bool {
	return slices.ContainsFunc(s.covering(former.Addr, former.End()), func(p *place) bool {
		return slices.ContainsFunc(p.points, func(point *Point) bool { return point.change == change })
	})
}

func (s *Site) releaseAll(points []*Point) {
	for _, point := range points {
		for _, a := range s.arenas {
			if a.owns(point.change) {
				a.idle = append(a.idle, point.change)
			}
		}
	}
}

// freshOf returns the points that a change adds.
func (b *Batch) freshOf(c *change) (list []*Point) {
	for _, i := range c.fresh {
		list = append(list, b.points[i])
	}
	return list
}

// Points returns the points of all places.
func (s *Site) Points() []node.Patched {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []node.Patched
	for _, p := range s.places {
		for _, point := range p.points {
			list = append(list, point)
		}
	}
	return list
}
