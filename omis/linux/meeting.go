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

// DefaultPatience is Config.Patience unless another is asked for.
const DefaultPatience = 5 * time.Second

// meeting is where threads of a process are held without being stopped: at
// places with a jump, each of which is a crossing. Watches that are the engine's
// have crossings where the program allows them; ours, and all while single steps or
// system calls are watched, want breakpoints.
//
// site and server belong to the owner's goroutine. Handlers are called on the
// server's.
type meeting struct {
	o       *owner
	site    *rendezvous.Site   // nil: the process has not been looked at
	server  *rendezvous.Server // nil: no jump has stood
	barred  error              // why there can be no jumps in the process
	changes atomic.Uint64      // raised when threads have ended, or are not observed any more

	// The server's goroutine alone uses these.
	members map[int]bool // threads that are, or are not, observed ones of the process
	as      uint64       // of changes, when members was true
	hit     *heldHit     // the next one to hand out

	mu        sync.Mutex
	crossings map[uint64]*crossing
	kept      map[*keptThread]struct{}
}

// crossing is a place where a jump stands, or one has become a breakpoint: a
// thread may still be on its way from the jump.
type crossing struct {
	watches []*watch
	former  bool
}

func newMeeting(o *owner) *meeting {
	return &meeting{o: o, members: make(map[int]bool), crossings: make(map[uint64]*crossing), kept: make(map[*keptThread]struct{})}
}

// findSite looks what an earlier monitor left in a process, and takes its jumps
// out: nobody watches them.
func (m *meeting) findSite() error {
	mapped, err := proc.Maps(m.o.proc.PID)
	if err != nil {
		return err
	}
	patience := m.o.node.patience
	err = sanely(func() error {
		m.site = rendezvous.Adopt(host{m.o}, mapped, rendezvous.Config{Vacancies: m.vacancies, Patience: patience})
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

// bars tells why threads of the process cannot be held by rendezvous.
func (m *meeting) bars() error {
	if m.o.node.byPtrace {
		return fmt.Errorf("the monitor was told to patch no program")
	}
	// A thread would wait under the id it has there.
	if same, err := proc.SameNumbers(m.o.proc.PID); err != nil || !same {
		return fmt.Errorf("the process is in another pid namespace")
	}
	for _, t := range m.o.tracer.threads {
		s, err := proc.ReadThreadStatus(t.pid, t.tid)
		switch {
		case err != nil:
		case s.Seccomp != 0:
			return fmt.Errorf("a filter of the process may refuse the system calls it takes")
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

// host is the process as package rendezvous wants to have it.
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

// serve begins to wait for threads. The handler's thread is told of hits as soon
// as there are any: the machine has nothing better to do than to wake it.
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

// end forgets a memory that has ceased to be.
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

// part ends the meeting in a process that is frozen and about to be let go; false:
// jumps still stand. The process keeps the code of it, for next time.
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
	clear(m.crossings) // of breakpoints by now
	m.mu.Unlock()
	if m.isFree() {
		// Where that fails, some memory stays mapped that nobody uses.
		_ = m.site.Withdraw()
	}
	m.end()
	return true
}

// isFree tells whether no thread of the frozen process is in a hold, or comes back
// to one from a signal handler.
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

// stackHas looks for addresses on the stack of a stopped thread: one that a signal
// handler will return to is there. What cannot be read may have any.
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
