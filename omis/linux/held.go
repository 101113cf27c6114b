//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis/linux/rendezvous"
	"mirador/omis/node"
)

// heldHit is the hit that handlers get for a thread at a crossing.
type heldHit struct {
	node.Hit
	m    *meeting
	at   *rendezvous.Hit
	kept *keptThread // not nil: a handler keeps the thread
}

// keptThread is a thread that handlers keep held after they have returned.
type keptThread struct {
	m       *meeting
	tid     int
	at      *rendezvous.Hit // another thread's hit once this thread is stopped
	release func()

	// Guarded by meeting.mu.
	holds   int
	stopped *thread // the thread after it was taken out of its hold; ptrace stops it
}

// arrived is called on the server's goroutine when a thread is held. Threads that are not
// observed continue: a vfork child, which is no thread of the process, and threads that were
// let go.
func (m *meeting) arrived(at *rendezvous.Hit) {
	watches := m.watchesAt(at.Addr)
	if len(watches) == 0 || !m.memberOf(at.TID).is {
		return
	}
	h := m.newHit(at)
	for _, w := range watches {
		w.handle(&h.Hit)
	}
}

func (m *meeting) watchesAt(addr uint64) []*watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.crossings[addr]; c != nil {
		return c.watches
	}
	return nil
}

// mostMembers bounds the number of known threads, because a target can invent ids.
const mostMembers = 1 << 16

// membership says whether a thread is an observed thread of the process, and which life it has (see
// lifetimes).
type membership struct {
	is   bool
	life uint64
}

// memberOf returns the membership of a thread. An id is not reused before the owner has recorded the end of its
// thread.
func (m *meeting) memberOf(tid int) membership {
	if now := m.changes.Load(); now != m.as || len(m.members) > mostMembers {
		clear(m.members)
		m.as = now
	}
	its, known := m.members[tid]
	if !known {
		p := m.o.proc
		its = membership{isThread(p.PID, tid) && m.o.node.released.roleOf(p, tid) == member, m.o.lives.find(tid)}
		m.members[tid] = its
	}
	return its
}

// newHit returns the next hit. A hit that no handler has held is reused.
func (m *meeting) newHit(at *rendezvous.Hit) *heldHit {
	h := m.hit
	if h == nil || h.kept != nil {
		h = &heldHit{m: m}
		h.Hold, h.Now = h.hold, m.o.node.Now
		m.hit = h
	}
	h.Hit = node.Hit{
		Proc: m.o.proc, TID: at.TID, Life: m.memberOf(at.TID).life, Addr: at.Addr, SP: at.Regs[rendezvous.RSP], Flags: at.Regs[rendezvous.RFlags], Time: h.Now(),
		Held: node.HeldByRendezvous, Hold: h.Hold, Now: h.Now,
	}
	r := at.Regs
	h.Args = node.Args{r[rendezvous.RDI], r[rendezvous.RSI], r[rendezvous.RDX], r[rendezvous.RCX], r[rendezvous.R8], r[rendezvous.R9]}
	h.at = at
	return h
}

// hold is Hit.Hold.
func (h *heldHit) hold() (release func()) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	k := h.kept
	if k == nil {
		k = &keptThread{m: h.m, tid: h.at.TID, at: h.at, release: h.at.Hold()}
		h.kept = k
		h.m.kept[k] = struct{}{}
	}
	k.holds++
	var once sync.Once
	return func() { once.Do(k.letGo) }
}

// letGo ends one of the holds; after the last, the thread continues.
func (k *keptThread) letGo() {
	m := k.m
	m.mu.Lock()
	k.holds--
	over := k.holds == 0
	if over {
		delete(m.kept, k)
	}
	t, bereft := k.stopped, !m.stands()
	m.mu.Unlock()
	switch {
	case !over:
	case t != nil:
		m.o.box.post(releaseThread{t})
	default:
		k.release()
		if bereft {
			m.o.box.post(lookAgain{}) // the owner may have existed only for this thread
		}
	}
}

// stands reports whether there are jumps. The caller holds mu.
func (m *meeting) stands() bool {
	for _, c := range m.crossings {
		if !c.former {
			return true
		}
	}
	return false
}

// lookAgain is the command to an owner to check whether it is still needed.
type lookAgain struct{}

func (lookAgain) do(*owner) {}

// keeps reports whether threads are kept for lists that are not done.
func (m *meeting) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept) > 0
}

// keepsThread reports whether a thread is kept and not stopped.
func (m *meeting) keepsThread(tid int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.kept {
		if k.tid == tid && k.stopped == nil {
			return true
		}
	}
	return false
}

// registers calls a function with the registers of a thread that is kept and not stopped; it
// returns false if the thread is not kept. If a kept thread runs a signal handler and is kept there
// too, registers takes the registers of the innermost hold.
func (m *meeting) registers(tid int, use func(*rendezvous.Registers)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var inner *rendezvous.Registers
	for k := range m.kept {
		switch {
		case k.tid != tid:
		case k.stopped != nil || !k.at.Held():
			return false
		case inner == nil || k.at.Regs[rendezvous.RSP] < inner[rendezvous.RSP]:
			inner = k.at.Regs
		}
	}
	if inner == nil {
		return false
	}
	use(inner)
	return true
}
