//go:build linux && amd64

package linux

import (
	"bytes"
	"sync"
)

// veil hides breakpoints from those who read the memory of their process. It
// knows all that ever stood, and may be used from any goroutine: a reader that
// saw an INT3 finds it here whatever happened meanwhile.
type veil struct {
	mu        sync.RWMutex
	originals map[uint64]byte
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

// clear is called when no INT3 can be there any more.
func (v *veil) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.originals = nil
}

// hide puts the original bytes into memory that was read from addr.
func (v *veil) hide(addr uint64, memory []byte) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.originals) == 0 {
		return
	}
	for at := 0; ; at++ {
		next := bytes.IndexByte(memory[at:], int3)
		if next < 0 {
			return
		}
		at += next
		if original, ok := v.originals[addr+uint64(at)]; ok {
			memory[at] = original
		}
	}
}
