//go:build linux && amd64

package linux

import (
	"os"
	"slices"
	"sync/atomic"
	"time"

	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
)

// birth is a process that was just created, while handlers still hold its creator:
// they may want to look out for something in it, beginning with its first
// instruction (OMIS 8.1.3, thread_creates_proc). Until they are done it is kept
// where it begins. A child that shares its creator's memory cannot be kept there,
// nor traced by itself: it goes on to the program it executes, and is kept before
// that one's first instruction.
//
// Its creator's owner traces it, and hands it over to its own owner where somebody
// wants that. It belongs to the goroutine of the former.
type birth struct {
	parent *owner
	by     *thread // who created it
	child  *thread
	ready  bool   // it stands where it is kept
	heir   *owner // who has it by now
	wanted *inherit
}

// family owns what is known of processes and threads that are just created, and of children
// that are to be released.
type family struct {
	o         *owner
	unborn    map[int]ptrace.Status // stopped before their creation was reported
	offspring []*thread             // stopped children that are to be released
	births    []*birth              // processes whose creator may be held for them
}

// expect is called when a process is created, before anybody hears of it.
func (f *family) expect(by, child *thread) *birth {
	b := &birth{parent: f.o, by: by, child: child}
	f.births = append(f.births, b)
	f.o.node.owners.expect(b)
	return b
}

// due tells that nobody who heard of the birth holds the creator any more.
func (b *birth) due() bool {
	own := 0
	if b.child.waiting != nil {
		own = 1 // it waits for the child
	}
	return b.by.holds <= own || b.parent.ended || b.parent.closing
}

// attendBirths hands over who is wanted and lets go who is due.
func (f *family) attendBirths() {
	for i := 0; i < len(f.births); {
		if !f.attend(f.births[i]) {
			i++
			continue
		}
		f.births = append(f.births[:i], f.births[i+1:]...)
	}
}

// attend returns whether nothing is left to do.
func (f *family) attend(b *birth) bool {
	here := f.o.tracer.threads[b.child.tid] == b.child
	if c := b.wanted; c != nil && (b.ready || !here) {
		b.wanted = nil
		switch {
		case !here:
			c.give(nil)
		case !c.late.Load():
			f.handOver(b, c)
			here = false
		}
	}
	if !b.due() {
		return false
	}
	f.o.node.owners.born(b)
	switch {
	case b.heir != nil:
		b.heir.box.post(begin{b.child.pid})
	case here && b.ready:
		f.release(b.child)
	}
	return true
}

// bury lets go whom a process that has ended leaves behind.
func (f *family) bury() {
	for _, b := range f.births {
		if b.ready && f.o.tracer.threads[b.child.tid] == b.child {
			b.ready = false
			f.release(b.child)
		}
	}
}

// birthOf finds the birth of a process that may have to be kept.
func (f *family) birthOf(t *thread) *birth {
	for _, b := range f.births {
		if b.child == t {
			return b
		}
	}
	return nil
}

// moveOut is called when a guest has executed a program: it has a memory of its own
// now. Where it is, inside execve, nobody can send it to sleep.
func (f *family) moveOut(t *thread) {
	if b := f.birthOf(t); b == nil || b.due() {
		_ = ptrace.Detach(t.tid, 0)
		f.o.tracer.forget(t)
		return
	}
	t.kind, t.stop = emigrant, running
	t.asked = ptrace.Interrupt(t.tid) == nil
	_ = ptrace.Cont(t.tid, 0)
}

// arrived notes that a new process stands where it may be kept.
func (f *family) arrived(t *thread) {
	ptrace.Reap(t.tid)
	if b := f.birthOf(t); b != nil {
		b.ready = true
		return
	}
	f.offspring = append(f.offspring, t)
}

// handOver lets a new process go to its own owner. No two can trace it at a time,
// and it must not run in between, nor be left standing should the monitor die: it
// takes a nap.
func (f *family) handOver(b *birth, c *inherit) {
	t := b.child
	n, err := f.putToSleep(t)
	if t.stopped() {
		b.heir = c.heir
	}
	f.detach(t)
	c.nap = n
	c.give(err)
}

func (f *family) putToSleep(t *thread) (*napping, error) {
	memory, err := openMemory(t.pid)
	if err != nil {
		return nil, err // it was killed
	}
	n := &napping{memory: memory, cleanUp: func() {}}
	if t.kind == offspring {
		f.clean(t, memory)
	}
	if t.kind == offspring && f.o.space.home != 0 && f.hasHome(memory) {
		n.stub = f.o.space.home.Stub()
	} else if n.stub, n.cleanUp, err = caveStub(t.pid, memory); err != nil {
		memory.Close()
		return nil, err
	}
	var regs ptrace.Regs
	err = ptrace.GetRegs(t.tid, &regs)
	if err == nil {
		n.begin = resident.Resumed(regs)
		err = n.lieDown(t.tid)
	}
	if err != nil {
		n.cleanUp()
		memory.Close()
		return nil, err
	}
	return n, nil
}

// napping is a process that sleeps before its first instruction, from where it goes
// on by itself when the nap is over.
type napping struct {
	memory  *os.File
	stub    uint64
	cleanUp func() // takes the stub away
	begin   ptrace.Regs
}

// lieDown sends a stopped process there.
func (n *napping) lieDown(pid int) error {
	detour, frame := resident.Detour(n.begin, n.stub, sleepCall(&n.begin, nap))
	if _, err := n.memory.WriteAt(frame, int64(detour.Rsp)); err != nil {
		return err
	}
	return ptrace.SetRegs(pid, &detour)
}

// getUp brings a stopped process back to where it begins; false: it is not asleep.
func (n *napping) getUp(pid int) (bool, error) {
	var regs ptrace.Regs
	if err := ptrace.GetRegs(pid, &regs); err != nil {
		return false, err
	}
	if regs.Rip < n.stub || regs.Rip > n.stub+resident.StubReturn {
		return false, nil
	}
	if err := ptrace.SetRegs(pid, &n.begin); err != nil {
		return false, err
	}
	n.cleanUp()
	return true, nil
}

// inherit is the first command of the owner of a process that is just being born.
type inherit struct {
	*answer
	from *birth
	heir *owner
	nap  *napping
	late atomic.Bool // nobody waits any more
}

// wants is the command to the owner who has it so far.
type wants struct{ *inherit }

func (c wants) do(o *owner) {
	if !slices.Contains(o.family.births, c.from) {
		c.give(nil) // it was let go
		return
	}
	c.from.wanted = c.inherit
}

// do takes the process over. Where that fails, attaching to it tells why.
func (c *inherit) do(o *owner) {
	if !c.from.parent.box.post(wants{c}) {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.late.Store(true) // its creator's memory is all it has as yet
		return
	}
	if c.err == nil && c.nap != nil {
		o.family.wake(c.nap)
	}
}

// wake takes over a process that takes a nap; it is kept until its birth is over.
func (f *family) wake(n *napping) {
	defer n.memory.Close()
	pid := f.o.proc.PID
	if f.o.tracer.seizeThread(pid) != nil {
		return
	}
	t := &thread{tid: pid, pid: pid, holds: 1, newborn: true}
	f.o.tracer.threads[pid] = t
	f.o.tracer.whole = true
	f.o.tracer.interrupt(t)
	if f.o.tracer.pump(nap, func() bool { return t.stopped() || f.o.tracer.threads[pid] != t }) && t.stopped() {
		// A signal may have woken it already; then it stays where that took it.
		_, _ = n.getUp(pid)
	}
}

// begin ends the keeping of a process that was handed over.
type begin struct{ pid int }

func (c begin) do(o *owner) {
	if t := o.tracer.threads[c.pid]; t != nil && t.newborn {
		t.newborn = false
		releaseThread{t}.do(o)
	}
}

// tellBirth tells of a new process and, as OMIS 8.1.3 wants it, of its first thread
// after it.
func (f *family) tellBirth(t *thread, child int) {
	f.o.events.tell(node.EventProcCreated, t, child)
	f.o.events.tellOf(node.EventThreadCreated, t, func(h *hit) { h.Child, h.ChildProc = child, child })
}
