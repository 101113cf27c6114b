//go:build linux && amd64

package linux

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
)

// happened handles clone, fork, vfork and execve.
func (f *family) happened(t *thread, event int) {
	if event == unix.PTRACE_EVENT_EXEC {
		// Until this stop is reaped, the kernel answers no requests about a thread that got
		// another id by execve.
		ptrace.Reap(t.tid)
	}
	msg, err := ptrace.EventMessage(t.tid)
	switch {
	case err != nil:
		// The thread was killed; its end will be reported.
		return
	case event == unix.PTRACE_EVENT_EXEC:
		f.executed(t, msg)
		return
	case event == unix.PTRACE_EVENT_CLONE && isThread(t.pid, msg):
		f.tellThread(t, msg)
	case f.sharesMemory(t, msg):
		child := &thread{tid: msg, pid: msg, kind: vforked, options: t.options}
		f.expect(t, child)
		f.adopt(child)
		f.tellBirth(t, msg)
	default:
		// The parent is kept until its child is released, because it may want to trace the
		// child.
		t.holds++
		child := &thread{tid: msg, pid: msg, kind: forked, options: t.options, unblocked: t.unblocked, mask: t.mask, waiting: t}
		f.expect(t, child)
		f.adopt(child)
		f.tellBirth(t, msg)
	}
	f.o.tracer.settle(t)
}

// tellThread reports a new thread, which does not begin before all lists are done (OMIS 8.1.3,
// thread_creates_thread).
func (f *family) tellThread(t *thread, tid int) {
	newborn := &thread{tid: tid, pid: t.pid, kind: t.kind, options: t.options, parent: t.tid, holds: 1, life: f.o.lives.begin(tid, f.o.node.lives.Add(1))}
	if t.kind == unobserved {
		newborn.kind = member // only its creator was let go
	}
	f.adopt(newborn)
	f.o.events.tellOf(node.EventThreadCreated, t, func(h *hit) { h.Child, h.ChildLife, h.newborn = tid, newborn.life, newborn })
	releaseThread{newborn}.do(f.o)
}

func isThread(pid, tid int) bool {
	var st unix.Stat_t
	return unix.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid), &st) == nil
}

// sharesMemory reports whether a child shares its parent's memory (vfork, or clone with
// CLONE_VM); a fork child has a copy.
func (f *family) sharesMemory(parent *thread, child int) bool {
	const kcmpVM = 1
	r, _, errno := unix.RawSyscall6(unix.SYS_KCMP, uintptr(parent.pid), uintptr(child), kcmpVM, 0, 0, 0)
	return errno == 0 && r == 0
}

// adopt adds a new thread or child, which the kernel has attached by itself.
func (f *family) adopt(t *thread) {
	s, seen := f.unborn[t.tid]
	delete(f.unborn, t.tid)
	if seen && s.Ended() {
		f.letParentGo(t)
		return
	}
	f.o.tracer.threads[t.tid] = t
	if seen {
		f.o.tracer.trapped(t, s)
	}
}

// release releases a child, after it cleaned a fork child.
func (f *family) release(t *thread) {
	if t.kind == forked {
		f.cleanChild(t)
	}
	f.detach(t)
}

// detach detaches a child. If the child takes too long over a call for the monitor, it is
// detached at its next stop.
func (f *family) detach(t *thread) {
	if f.o.tracer.threads[t.tid] == t && !t.stopped() {
		f.o.tracer.interrupt(t)
		return
	}
	_ = ptrace.Detach(t.tid, 0)
	f.o.tracer.forget(t)
}

func (f *family) cleanChild(t *thread) {
	memory, err := openMemory(t.pid)
	if err != nil {
		return // it was killed
	}
	defer memory.Close()
	f.clean(t, memory)
}

// clean removes from a fork child the copies of what the monitor has written into its parent:
// breakpoints, which only the resident handler would handle, and that handler. If the monitor
// dies before, the handler serves the child.
func (f *family) clean(t *thread, memory *os.File) {
	if f.o.meeting.site != nil {
		f.o.meeting.site.Clean(memory)
	}
	if g := f.o.node.grounds.of(f.o.proc); g != nil {
		g.site.Clean(memory)
	}
	// This includes breakpoints that were removed from the parent since the fork.
	for _, b := range f.o.space.table {
		restore(t.pid, memory, b)
	}
	if f.o.space.home != 0 && f.hasHome(memory) {
		f.o.masks.closeHandlers(t, memory)
		_ = f.o.space.setAction(t, memory, unix.SIGTRAP, f.o.space.old)
	}
	if !f.o.space.old.Handled() {
		f.o.masks.reblock(t)
	}
}

// letParentGo ends the wait of a parent for its child.
func (f *family) letParentGo(t *thread) {
	if parent := t.waiting; parent != nil {
		t.waiting = nil
		releaseThread{parent}.do(f.o)
	}
}

// hasHome reports whether a fork child has a copy of home. A child that was forked while
// the monitor made home has no copy. It cannot make system calls for the monitor, and need not.
func (f *family) hasHome(memory *os.File) bool {
	image := make([]byte, resident.ArenaSize)
	if _, err := memory.ReadAt(image, int64(f.o.space.home)); err != nil {
		return false
	}
	_, err := f.o.space.home.Parse(image)
	return err == nil
}

// executed is called when a thread has replaced its process's program: all memory is new, the
// other threads have ended, and the thread has the process's id.
func (f *family) executed(t *thread, former int) {
	if t.kind == vforked {
		f.moveOut(t)
		return
	}
	if former != t.tid {
		if replaced := f.o.tracer.threads[former]; replaced != nil {
			t.halted, t.pauses, t.holds = replaced.halted, replaced.pauses, 0
			f.o.tracer.forget(replaced)
		}
	}
	f.o.space.vacate()
	f.o.ending.begin()
	if !t.makesCall() {
		t.injection = nil // the program with the abandoned call has ended
	}
	if f.o.changedUser = f.o.sameUser() != nil; f.o.changedUser {
		ptrace.Reap(t.tid)
		return
	}
	t.fresh = f.o.library.any()
	f.o.tracer.settle(t)
}

// promoted is called when a traced thread has executed a program and got the id of the
// process's first thread, which was not traced.
func (f *family) promoted(s ptrace.Status) {
	ptrace.Reap(s.TID)
	former, err := ptrace.EventMessage(s.TID)
	if err != nil {
		return // it was killed; its end will be reported
	}
	t := f.o.tracer.threads[former]
	if t == nil {
		t = &thread{pid: s.TID, kind: f.o.node.released.roleOf(f.o.proc, s.TID)}
	}
	delete(f.o.tracer.threads, former)
	t.tid, t.asked = s.TID, false
	f.o.tracer.threads[t.tid] = t
	f.o.tracer.stopped(t, s)
}

// openMemory opens a process's memory for reading and writing, including its program text.
func openMemory(pid int) (*os.File, error) {
	return os.OpenFile(memoryPath(pid), os.O_RDWR, 0)
}

func memoryPath(pid int) string { return fmt.Sprintf("/proc/%d/mem", pid) }
