//go:build linux && amd64

package rendezvous

import (
	"sync"
	"sync/atomic"
)

// Hit is a thread held at a place. It is valid until the thread continues: when the
// handler returns, or, after Hold, when its release is called.
type Hit struct {
	TID  int    // in the target's own pid namespace
	Addr uint64 // Plan.Addr

	// Regs are the thread's registers. The thread continues with the values written here,
	// unless its patience has ended.
	Regs *Registers

	server *Server
	slot   int
	number uint64
	taken  bool // by Hold
}

// Hold keeps the thread held after the handler returns, until release is called (once,
// from any goroutine). Only handlers may call Hold, once for a hit.
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

// Held reports whether the thread is still held: its patience may have ended.
func (h *Hit) Held() bool {
	return atomic.LoadUint32(&h.server.board.slots[h.slot].word)&futexTIDMask == h.server.owner
}

// release ends a hold from any goroutine. It sets no pending operation on the robust
// list, because only the server's thread may: if the monitor dies between the release and
// the wake-up, the thread sees its changed word when its nap ends.
func (v *Server) release(slot int, number uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.holds.Add(-1)
	if v.kept[slot] == number {
		v.kept[slot] = 0
		v.letGo(slot)
	}
}

// Reclaim frees the slots of threads that have ended according to alive.
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
