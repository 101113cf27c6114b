//go:build linux && amd64

package rendezvous

import (
	"sync"
	"sync/atomic"
)

// Hit is a thread held at a place. It is valid until the thread is let go: when
// the handler returns, or, after a Hold, when that is released.
type Hit struct {
	TID  int    // as the target's own pid namespace counts
	Addr uint64 // Plan.Addr

	// Regs are the thread's registers. What is written there arrives, unless the
	// thread has lost patience meanwhile.
	Regs *Registers

	server *Server
	slot   int
	number uint64
	taken  bool // by a Hold
}

// Hold keeps the thread held after the handler returned, until release was
// called (once, from any goroutine). Only handlers may call Hold, once for a hit.
func (h *Hit) Hold() (release func()) {
	h.taken = true
	v, slot, number := h.server, h.slot, h.number
	v.holds.Add(1)
	v.mu.Lock()
	v.kept[slot] = number
	v.mu.Unlock()
	var once sync.Once
	return func() { once.Do(func() { v.release(slot, number) }) }
}

// Held tells whether the thread is still held: it may have lost patience.
func (h *Hit) Held() bool {
	return atomic.LoadUint32(&h.server.board.slots[h.slot].word)&futexTIDMask == h.server.owner
}

// release ends a hold on any goroutine. No pending operation is noted, that is
// for the server's thread alone: if the monitor dies between the release and the
// wake-up, the thread finds its word changed when its nap ends.
func (v *Server) release(slot int, number uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.holds.Add(-1)
	if v.kept[slot] == number {
		v.kept[slot] = 0
		v.letGo(slot)
	}
}

// Reclaim frees the slots of threads that have ended, which alive tells.
func (v *Server) Reclaim(alive func(tid int) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.retired {
		return
	}
	for i := range v.board.slots {
		slot := &v.board.slots[i]
		tid := atomic.LoadUint32(&slot.tid)
		if tid == 0 || alive(int(tid)) {
			continue
		}
		v.kept[i] = 0
		atomic.StoreUint32(&slot.word, 0)
		atomic.CompareAndSwapUint32(&slot.tid, tid, 0)
	}
}
