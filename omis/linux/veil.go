//go:build linux && amd64

package linux

import (
	"bytes"
	"iter"
	"sync"

	"mirador/omis/linux/rendezvous"
)

// veil hides breakpoints and jumps from readers of the process's memory. It has all that ever
// existed, so that a reader finds an old one, and may be used from any goroutine.
type veil struct {
	mu        sync.RWMutex
	originals map[uint64]byte
	patches   map[uint64]rendezvous.Patch
}

// put is called before an INT3 is written.
func (v *veil) put(addr uint64, original byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.originals == nil {
		v.originals = make(map[uint64]byte)
	}
	v.originals[addr] = original
}

// patch is called before a jump is written.
func (v *veil) patch(p rendezvous.Patch) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.patches == nil {
		v.patches = make(map[uint64]rendezvous.Patch)
	}
	v.patches[p.Addr] = p
}

// clear is called when none can exist any more.
func (v *veil) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.originals, v.patches = nil, nil
}

// hide restores the original bytes in memory that was read from addr.
func (v *veil) hide(addr uint64, memory []byte) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	v.hideBreakpoints(addr, memory)
	v.hideJumps(addr, memory)
}

func (v *veil) hideBreakpoints(addr uint64, memory []byte) {
	if len(v.originals) == 0 {
		return
	}
	for at := range indices(memory, int3) {
		if original, ok := v.originals[addr+uint64(at)]; ok {
			memory[at] = original
		}
	}
}

func (v *veil) hideJumps(addr uint64, memory []byte) {
	if len(v.patches) == 0 {
		return
	}
	const opcode, length = 0xe9, 5
	for before := uint64(1); before < length; before++ {
		v.hideJump(addr-before, addr, memory)
	}
	for at := range indices(memory, opcode) {
		v.hideJump(addr+uint64(at), addr, memory)
	}
}

// hideJump hides a jump at a place; memory may contain only a part of it.
func (v *veil) hideJump(place, addr uint64, memory []byte) {
	p, ok := v.patches[place]
	if !ok {
		return
	}
	standing, displaced := p.Jump, p.Displaced
	if place < addr {
		standing, displaced = standing[addr-place:], displaced[addr-place:]
	} else {
		memory = memory[place-addr:]
	}
	n := min(len(memory), len(standing))
	if bytes.Equal(memory[:n], standing[:n]) {
		copy(memory, displaced[:n])
	}
}

// indices yields the positions of a byte.
func indices(b []byte, c byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at++ {
			next := bytes.IndexByte(b[at:], c)
			if next < 0 {
				return
			}
			at += next
			if !yield(at) {
				return
			}
		}
	}
}
