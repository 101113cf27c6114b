//go:build linux && amd64

package patch

import (
	"io"
	"slices"
	"sort"
	"sync"

	"mirador/omis/code/x86/detour"
)

// Memory is the memory of the process, by address. It may be used from any goroutine.
type Memory interface {
	io.ReaderAt
	io.WriterAt
}

// Site contains all code that was put into a process. Its methods may be called from any goroutine,
// but not concurrently if they prepare or make changes.
type Site struct {
	memory       Memory
	base, shared uint64 // address and size of the shared memory in the process

	// note locks mu, and so do the methods that read the tables. Commit does not hold mu, because
	// it uses methods of Process that read the tables.
	mu      sync.RWMutex
	arenas  []*arena
	places  []*place // places that have jumps, in ascending order of these
	stubs   []*place // places and retired together, in ascending order of their stubs
	retired []*place // former places whose stubs may contain a thread
	unused  []*place // former places whose stubs contain no thread; Tidy frees them
}

// NewSite returns the site of a process with shared memory at base.
func NewSite(memory Memory, base, shared uint64) *Site {
	return &Site{memory: memory, base: base, shared: shared}
}

// note replaces the tables.
func (s *Site) note(arenas []*arena, places, retired []*place) {
	slices.SortFunc(places, func(a, b *place) int { return compare(a.Addr, b.Addr) })
	stubs := slices.Concat(places, retired)
	slices.SortFunc(stubs, func(a, b *place) int { return compare(a.stub, b.stub) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arenas, s.places, s.retired, s.stubs = arenas, places, retired, stubs
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// covering returns the places whose windows overlap a range.
func (s *Site) covering(begin, end uint64) []*place {
	first := sort.Search(len(s.places), func(i int) bool { return s.places[i].End() > begin })
	last := first
	for last < len(s.places) && s.places[last].Addr < end {
		last++
	}
	return s.places[first:last]
}

// Covers reports whether a window overlaps a range of the program.
func (s *Site) Covers(begin, end uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.covering(begin, end)) > 0
}

// stubAt returns the place whose stub contains an address, or nil.
func (s *Site) stubAt(pc uint64) *place {
	if !s.contains(pc) {
		return nil
	}
	i := sort.Search(len(s.stubs), func(i int) bool { return s.stubs[i].stub > pc })
	if i == 0 || !s.stubs[i-1].block.contains(pc) {
		return nil
	}
	return s.stubs[i-1]
}

// Contains reports whether pc is in code of the site.
func (s *Site) Contains(pc uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contains(pc)
}

func (s *Site) contains(pc uint64) bool {
	return slices.ContainsFunc(s.arenas, func(a *arena) bool { return a.contains(pc) })
}

// InPlace returns the address in the program that corresponds to pc in a stub. exact reports that a
// thread at pc has the same state as it would have at that address. ok is false if pc is in no
// stub.
func (s *Site) InPlace(pc uint64) (at uint64, exact, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.stubAt(pc)
	if p == nil {
		return 0, false, false
	}
	at, exact = p.inPlace(pc)
	return at, exact, true
}

// Leads returns the address in the program at which a thread leaves the stub that contains pc,
// unless it branches elsewhere.
func (s *Site) Leads(pc uint64) (to uint64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.stubAt(pc)
	if p == nil {
		return 0, false
	}
	return p.End(), true
}

// Hide replaces jumps in memory that was read from addr by the program's own bytes.
func (s *Site) Hide(addr uint64, memory []byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.covering(addr, addr+uint64(len(memory))) {
		jump := p.jump()
		hide(jump[:], p.Code[:detour.JumpSize], p.Addr, addr, memory)
	}
}

// hide replaces the bytes stands at address at by displaced. memory was read from begin, and may
// contain only a part of these bytes.
func hide(stands, displaced []byte, at, begin uint64, memory []byte) {
	for i := range stands {
		if j := at + uint64(i) - begin; j < uint64(len(memory)) {
			if memory[j] != stands[i] {
				return
			}
		}
	}
	for i := range displaced {
		if j := at + uint64(i) - begin; j < uint64(len(memory)) {
			memory[j] = displaced[i]
		}
	}
}

// Stands returns the number of places.
func (s *Site) Stands() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.places)
}

// Clean restores the program's own bytes in the memory of a forked child, which must be stopped.
func (s *Site) Clean(child Memory) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.places {
		_ = p.restore(child)
	}
}

// restore removes the jump if it is there.
func (p *place) restore(memory Memory) error {
	var now [detour.JumpSize]byte
	if _, err := memory.ReadAt(now[:], int64(p.Addr)); err != nil || now != p.jump() {
		return err
	}
	_, err := memory.WriteAt(p.Code[:detour.JumpSize], int64(p.Addr))
	return err
}
