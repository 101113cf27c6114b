//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/rendezvous"
	"mirador/omis/linux/resident"
)

// DefaultPatience is the default of Config.Patience.
const DefaultPatience = 5 * time.Second

// meeting holds threads of a process without stopping them, at places with a jump; each of
// these is a crossing. Watches of the engine get crossings where the program allows them. The
// monitor's own watches, and all watches while single steps or system calls are watched, get
// breakpoints.
//
// site and server belong to the owner's goroutine. Handlers are called on the server's.
type meeting struct {
	o       *owner
	site    *rendezvous.Site   // nil before the process was examined
	server  *rendezvous.Server // nil before the first jump
	barred  error              // why jumps are impossible in the process
	changes atomic.Uint64      // increased when threads have ended or are not observed any more

	// Only the server's goroutine uses these.
	members map[int]membership
	as      uint64   // value of changes for which members is valid
	hit     *heldHit // the next one to hand out

	mu        sync.Mutex
	crossings map[uint64]*crossing
	kept      map[*keptThread]struct{}
}

// crossing is a place that has a jump, or that had one (former). A former place is kept because a
// thread that executed the jump, before a breakpoint replaced it, may not have arrived yet.
type crossing struct {
	watches []*watch
	former  bool
}

func newMeeting(o *owner) *meeting {
	return &meeting{o: o, members: make(map[int]membership), crossings: make(map[uint64]*crossing), kept: make(map[*keptThread]struct{})}
}

// findSite finds what an earlier monitor left in a process, and removes its jumps.
func (m *meeting) findSite() error {
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return err
	}
	config := rendezvous.Config{Vacancies: m.vacancies, Patience: m.o.node.patience, Mark: m.o.injector.numberOf(0)}
	err = sanely(func() error {
		m.site = rendezvous.Adopt(host{m.o}, mapped, config)
		m.barred = m.bars()
		m.o.space.leftover = m.o.space.findHome(mapped)
		return nil
	})
	if err != nil {
		return err
	}
	left := m.site.Standing()
	if len(left) == 0 {
		return nil
	}
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	if m.site == nil {
		return ended(m.o.proc.PID)
	}
	for _, addr := range left {
		if err := m.site.Remove(addr); err != nil {
			return m.o.space.memoryError(addr, err)
		}
	}
	return nil
}

// bars returns why threads of the process cannot be held by rendezvous, nil if they can.
func (m *meeting) bars() error {
	if m.o.node.byPtrace {
		return fmt.Errorf("the monitor is configured to patch no program")
	}
	// A thread would wait under the id that it has there.
	if same, err := proc.SameNumbers(m.o.proc.PID); err != nil || !same {
		return fmt.Errorf("the process is in another pid namespace")
	}
	return m.o.tracer.barsCode("of a rendezvous")
}

// barsCode returns why no code of the monitor can run in the process, nil if it can; calls names
// the system calls of that code.
func (tr *tracer) barsCode(calls string) error {
	for _, t := range tr.threads {
		s, err := proc.ReadThreadStatus(t.pid, t.tid)
		switch {
		case err != nil:
		case s.Seccomp != 0:
			return fmt.Errorf("a filter of the process may refuse the system calls %s", calls)
		case s.ShadowStack:
			return fmt.Errorf("the process has a shadow stack")
		}
	}
	return nil
}

func (m *meeting) vacancies(near uint64) []uint64 {
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return nil
	}
	return vacancies(mapped, near, rendezvous.ArenaSize)
}

// host is the process as package rendezvous sees it.
type host struct{ o *owner }

var _ rendezvous.Target = host{}

func (h host) PID() int { return h.o.proc.PID }

func (h host) ReadAt(b []byte, at int64) (int, error) { return h.o.space.memory.ReadAt(b, at) }

func (h host) WriteAt(b []byte, at int64) (int, error) { return h.o.space.memory.WriteAt(b, at) }

func (h host) Call(number uint64, args ...uint64) (int64, error) {
	c := resident.Call{Number: number}
	copy(c.Args[:], args)
	return h.o.injector.inject(c)
}

// serve begins to wait for threads.
func (m *meeting) serve() error {
	if m.server != nil {
		return nil
	}
	server, err := rendezvous.Serve(m.site, 0, m.arrived)
	if err == nil {
		m.server = server
	}
	return err
}

// lost is called when a thread has ended.
func (m *meeting) lost(t *thread) {
	m.changes.Add(1)
	if m.server != nil {
		m.server.Reclaim(func(tid int) bool { return m.o.tracer.threads[tid] != nil })
	}
}

// end forgets a memory that does not exist any more.
func (m *meeting) end() {
	if m.server != nil {
		m.server.Close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.crossings {
		for _, w := range c.watches {
			delete(m.o.events.watches, w)
		}
	}
	clear(m.crossings)
	clear(m.kept)
	if m.site != nil {
		m.site.Forget()
	}
	m.site, m.server, m.barred = nil, nil, nil
}

// part ends the meeting in a process that is frozen and about to be released. It returns false
// if there are still jumps. The process keeps the code, for the next time.
func (m *meeting) part() bool {
	if m.site == nil {
		return true
	}
	if len(m.site.Standing()) > 0 {
		return false
	}
	m.comeOut(nil)
	if m.site == nil {
		return true // the process has ended meanwhile
	}
	if m.server != nil {
		m.server.Close()
		m.server = nil
	}
	m.mu.Lock()
	clear(m.crossings) // they have breakpoints by now
	m.mu.Unlock()
	if m.isFree() {
		// If it fails, some unused memory stays mapped.
		_ = m.site.Withdraw()
	}
	m.end()
	return true
}

// isFree reports whether no thread of the frozen process is in a hold, or returns to one from
// a signal handler.
func (m *meeting) isFree() bool {
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return false
	}
	site := m.site
	for _, t := range m.o.tracer.threads {
		var regs ptrace.Regs
		if !t.stopped() || ptrace.GetRegs(t.tid, &regs) != nil || site.Holding(regs.Rip) || m.stackHas(&regs, mapped, site.Holding) {
			return false
		}
	}
	return true
}

// stackHas reports whether the stack of a stopped thread contains one of the addresses, as it
// does if a signal handler will return there. A stack that cannot be read may contain any.
func (m *meeting) stackHas(regs *ptrace.Regs, mapped proc.Mappings, in func(addr uint64) bool) bool {
	const redZone, word = 128, 8
	begin := (regs.Rsp - redZone) &^ (word - 1)
	area, ok := mapped.At(regs.Rsp)
	if !ok || area.End-begin > maxStack {
		return true
	}
	stack := make([]byte, area.End-begin)
	n, _ := m.o.space.memory.ReadAt(stack, int64(begin))
	for at := 0; at+word <= n; at += word {
		if in(binary.LittleEndian.Uint64(stack[at:])) {
			return true
		}
	}
	return n < len(stack)
}
