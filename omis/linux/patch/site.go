//go:build linux && amd64

package patch

import (
	"io"
	"slices"
	"sort"
	"sync"

	"mirador/omis/code/x86/detour"
)

// Memory is that of the process, by address. It may be used from any goroutine.
type Memory interface {
	io.ReaderAt
	io.WriterAt
}

// Site is all the code that was put into a process. Its methods may be called from
// any goroutine, but those that change something, or prepare to, one after the other.
type Site struct {
	memory       Memory
	base, shared uint64 // where the process has the shared memory, and its size

	// The lock is held by note, and by those who read while a change is under way: not
	// by a change itself, during which the process does things that make others read.
	mu      sync.RWMutex
	arenas  []*arena
	places  []*place // that stand, by the address of the jump
	stubs   []*place // that a thread may be in, by address: those of places that stand, and
	retired []*place // those of places that do not, or have others by now
	empty   []*place // were retired, and nobody can be in their stubs; for Tidy
}

// NewSite makes the site of a process with shared memory at base.
func NewSite(memory Memory, base, shared uint64) *Site {
	return &Site{memory: memory, base: base, shared: shared}
}

// note has the tables say what stands now.
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

// covering finds the places whose windows have something of a range.
func (s *Site) covering(begin, end uint64) []*place {
	first := sort.Search(len(s.places), func(i int) bool { return s.places[i].End() > begin })
	last := first
	for last < len(s.places) && s.places[last].Addr < end {
		last++
	}
	return s.places[first:last]
}

// Covers tells whether code was put where a range of the program is.
func (s *Site) Covers(begin, end uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.covering(begin, end)) > 0
}

// stubAt finds whose stub has an address.
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

// Contains tells whether a thread at pc is in code of the site.
func (s *Site) Contains(pc uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contains(pc)
}

func (s *Site) contains(pc uint64) bool {
	return slices.ContainsFunc(s.arenas, func(a *arena) bool { return a.contains(pc) })
}

// InPlace gives for an address in a stub the one in the program it stands for; exact
// tells that a thread there is in the state it would have in the program. ok is
// false for addresses that are in no stub.
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

// Leads gives for an address in a stub the one in the program where a thread there will come
// out, unless it branches elsewhere.
func (s *Site) Leads(pc uint64) (to uint64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.stubAt(pc)
	if p == nil {
		return 0, false
	}
	return p.End(), true
}

// Hide puts into memory that was read from an address what the program has where
// jumps stand.
func (s *Site) Hide(addr uint64, memory []byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.covering(addr, addr+uint64(len(memory))) {
		jump := p.jump()
		hide(jump[:], p.Code[:detour.JumpSize], p.Addr, addr, memory)
	}
}

// hide exchanges what stands at an address of memory, which was read from begin and
// may have a part of it only.
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

// Stands tells how many places do.
func (s *Site) Stands() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.places)
}

// Clean puts the program's own bytes back into the memory of a forked child, which
// stands still.
func (s *Site) Clean(child Memory) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.places {
		_ = p.restore(child)
	}
}

// restore takes the jump out, if it is there.
func (p *place) restore(memory Memory) error {
	var now [detour.JumpSize]byte
	if _, err := memory.ReadAt(now[:], int64(p.Addr)); err != nil || now != p.jump() {
		return err
	}
	_, err := memory.WriteAt(p.Code[:detour.JumpSize], int64(p.Addr))
	return err
}
