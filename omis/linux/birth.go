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

// birth is a process that was just created and whose creator is still held by handlers. They
// may want to watch the process from its first instruction on (OMIS 8.1.3,
// thread_creates_proc), so it is kept there until they are done. A child that shares its
// creator's memory cannot be kept there or traced by itself: it continues up to the program
// that it executes, and is kept before the first instruction of that program.
//
// The creator's owner traces the child, and hands it over to an owner of its own if a watch
// needs that. A birth belongs to the goroutine of the creator's owner.
type birth struct {
	parent *owner
	by     *thread // the creator
	child  *thread
	ready  bool   // it is stopped where it is kept
	taker  *owner // the owner that has taken it over
	wanted *inherit
}

// family owns what is known of processes and threads that are just created, and of children
// that are to be released.
type family struct {
	o         *owner
	unborn    map[int]ptrace.Status // stopped before their creation was reported
	toRelease []*thread             // stopped children that are to be released
	births    []*birth              // processes whose creator may be held for them
}

// expect records a process that is being created, before its creation is reported.
func (f *family) expect(by, child *thread) *birth {
	b := &birth{parent: f.o, by: by, child: child}
	f.births = append(f.births, b)
	f.o.node.owners.expect(b)
	return b
}

// due reports whether no handler that was told of the birth holds the creator any more.
func (b *birth) due() bool {
	own := 0
	if b.child.waiting != nil {
		own = 1 // it waits for the child
	}
	return b.by.holds <= own || b.parent.ended || b.parent.closing
}

// attendBirths hands over the children that another owner wants, and releases those that are
// not kept any more.
func (f *family) attendBirths() {
	for i := 0; i < len(f.births); {
		if !f.attend(f.births[i]) {
			i++
			continue
		}
		f.births = append(f.births[:i], f.births[i+1:]...)
	}
}

// attend reports whether nothing is left to do for a birth.
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
	case b.taker != nil:
		b.taker.box.post(begin{b.child.pid})
	case here && b.ready:
		f.release(b.child)
	}
	return true
}

// abandonBirths releases the children that are kept when their creator's process has ended.
func (f *family) abandonBirths() {
	for _, b := range f.births {
		if b.ready && f.o.tracer.threads[b.child.tid] == b.child {
			b.ready = false
			f.release(b.child)
		}
	}
}

// birthOf returns the birth of a process that the monitor may have to keep stopped, or nil.
func (f *family) birthOf(t *thread) *birth {
	for _, b := range f.births {
		if b.child == t {
			return b
		}
	}
	return nil
}

// moveOut is called when a vforked child has executed a program and so has memory of its own. Inside
// execve it cannot be sent to sleep.
func (f *family) moveOut(t *thread) {
	if b := f.birthOf(t); b == nil || b.due() {
		_ = ptrace.Detach(t.tid, 0)
		f.o.tracer.forget(t)
		return
	}
	t.kind, t.stop = vforkedExec, running
	t.asked = ptrace.Interrupt(t.tid) == nil
	_ = ptrace.Cont(t.tid, 0)
}

// arrived records that a new process has stopped where it may be kept.
func (f *family) arrived(t *thread) {
	ptrace.Reap(t.tid)
	if b := f.birthOf(t); b != nil {
		b.ready = true
		return
	}
	f.toRelease = append(f.toRelease, t)
}

// handOver hands a new process over to an owner of its own. Only one can trace it at a time;
// it must not run in between, and must not stay stopped if the monitor dies. So it takes a
// nap.
func (f *family) handOver(b *birth, c *inherit) {
	t := b.child
	n, err := f.putToSleep(t)
	if t.stopped() {
		b.taker = c.taker
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
	if t.kind == forked {
		f.clean(t, memory)
	}
	if t.kind == forked && f.o.space.home != 0 && f.hasHome(memory) {
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

// napping is a process that sleeps before its first instruction, and continues from there by
// itself when the nap is over.
type napping struct {
	memory  *os.File
	stub    uint64
	cleanUp func() // removes the stub
	begin   ptrace.Regs
}

// lieDown makes a stopped process sleep when it continues.
func (n *napping) lieDown(pid int) error {
	detour, frame := resident.Detour(n.begin, n.stub, sleepCall(&n.begin, nap))
	if _, err := n.memory.WriteAt(frame, int64(detour.Rsp)); err != nil {
		return err
	}
	return ptrace.SetRegs(pid, &detour)
}

// getUp moves a stopped process from its nap back to its first instruction. It returns false
// if the process does not sleep.
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

// inherit is the first command of the owner of a process that is just being created.
type inherit struct {
	*answer
	from  *birth
	taker *owner
	nap   *napping
	late  atomic.Bool // its owner does not wait any more
}

// wants is the command to the creator's owner, which traces the process so far.
type wants struct{ *inherit }

func (c wants) do(o *owner) {
	if !slices.Contains(o.family.births, c.from) {
		c.give(nil) // the process was released
		return
	}
	c.from.wanted = c.inherit
}

// do takes the process over. If that fails, the attachment that follows returns the reason.
func (c *inherit) do(o *owner) {
	if !c.from.parent.box.post(wants{c}) {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.late.Store(true) // it still shares its creator's memory
		return
	}
	if c.err == nil && c.nap != nil {
		o.family.wake(c.nap)
	}
}

// wake takes over a napping process, which is kept until its birth is over.
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
		// If a signal has woken it already, it stays where that took it.
		_, _ = n.getUp(pid)
	}
}

// begin releases a process that was handed over and kept.
type begin struct{ pid int }

func (c begin) do(o *owner) {
	if t := o.tracer.threads[c.pid]; t != nil && t.newborn {
		t.newborn = false
		releaseThread{t}.do(o)
	}
}

// tellBirth reports a new process and then, by OMIS 8.1.3, its first thread.
func (f *family) tellBirth(t *thread, child int) {
	f.o.events.tell(node.EventProcCreated, t, child)
	f.o.events.tellOf(node.EventThreadCreated, t, func(h *hit) { h.Child, h.ChildProc = child, child })
}
