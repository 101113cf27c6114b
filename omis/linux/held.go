//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis/linux/rendezvous"
	"mirador/omis/node"
)

// heldHit is what handlers get to see of a thread at a crossing.
type heldHit struct {
	node.Hit
	m    *meeting
	at   *rendezvous.Hit
	kept *keptThread // by a handler
}

// keptThread is held beyond the handlers.
type keptThread struct {
	m       *meeting
	tid     int
	at      *rendezvous.Hit // another's, when the thread is stopped
	release func()

	// Guarded by meeting.mu.
	holds   int
	stopped *thread // it was taken out of its hold, and is stopped by ptrace
}

// arrived is called on the server's goroutine when a thread is held. A vfork child
// may come along, which is none of the process's threads, or one that is not
// observed any more: they go on.
func (m *meeting) arrived(at *rendezvous.Hit) {
	watches := m.watchesAt(at.Addr)
	if len(watches) == 0 || !m.isMember(at.TID) {
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

// mostMembers is how many threads are known at most. A target can make up ids of others.
const mostMembers = 1 << 16

// isMember tells whether a thread is an observed one of the process. Ids are not
// used again before the owner has taken note of a thread's end.
func (m *meeting) isMember(tid int) bool {
	if now := m.changes.Load(); now != m.as || len(m.members) > mostMembers {
		clear(m.members)
		m.as = now
	}
	is, known := m.members[tid]
	if !known {
		p := m.o.proc
		is = isThread(p.PID, tid) && m.o.node.released.roleOf(p, tid) == member
		m.members[tid] = is
	}
	return is
}

// newHit prepares the next hit; one that nobody holds is used again.
func (m *meeting) newHit(at *rendezvous.Hit) *heldHit {
	h := m.hit
	if h == nil || h.kept != nil {
		h = &heldHit{m: m}
		h.Hold, h.Now = h.hold, m.o.node.Now
		m.hit = h
	}
	h.Hit = node.Hit{
		Proc: m.o.proc, TID: at.TID, Addr: at.Addr, SP: at.Regs[rendezvous.RSP], Time: h.Now(),
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

// letGo ends one of the holds; with the last the thread goes on.
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
			m.o.box.post(lookAgain{}) // it may have been all that the owner was there for
		}
	}
}

// stands tells whether there are jumps. The caller holds mu.
func (m *meeting) stands() bool {
	for _, c := range m.crossings {
		if !c.former {
			return true
		}
	}
	return false
}

// lookAgain has an owner look whether it has anything to do.
type lookAgain struct{}

func (lookAgain) do(*owner) {}

// keeps tells whether threads are held for lists that are not done.
func (m *meeting) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept) > 0
}

// keepsThread tells whether a thread is one of them, and not stopped.
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

// registers lends those of a thread that is kept and not stopped; false: there is
// no such thread. With several holds, one in a signal handler of the other, they
// are those of the innermost.
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
