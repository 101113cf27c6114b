//go:build linux && amd64

package rendezvous

import "sync"

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
	taken  bool // by a Hold
}

// Hold keeps the thread held after the handler returned, until release was
// called (once, from any goroutine). Only handlers may call Hold.
func (h *Hit) Hold() (release func()) {
	h.taken = true
	s, slot := h.server, h.slot
	s.holds.Add(1)
	var once sync.Once
	return func() { once.Do(func() { s.release(slot) }) }
}

// release ends a hold on any goroutine. No pending operation is noted, that is
// for the server's thread alone: if the monitor dies between the release and the
// wake-up, the thread finds its word changed when its nap ends.
func (v *Server) release(slot int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.holds.Add(-1)
	if !v.retired {
		v.letGo(slot)
	}
}
