//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// A process can have only one tracer, and CRIU is a tracer. To be saved by CRIU the process is
// lent: its owner removes what it has planted, stops the process by SIGSTOP so that nothing
// runs unobserved, and detaches. Afterwards it plants everything again and continues the
// process. The threads stay in the owner's table with everything that keeps them.

// lending lends the process to CRIU and takes it back. It belongs to the owner's goroutine.
type lending struct {
	o         *owner
	continued bool // a thread has received the monitor's SIGCONT, see endStop
}

// loan is a process that is lent.
type loan struct {
	pid       int
	untouched bool     // the monitor had planted nothing
	byOthers  bool     // it was stopped before, and remains stopped
	guarded   *os.File // the pidfd that the warden has
	back      chan struct{}
	taken     *answer
}

// lend lends the processes of the trees that have an owner.
func (cs *checkpoints) lend(trees []familyTree) (loans []*loan, err error) {
	for _, o := range cs.n.owners.among(trees) {
		l := &loan{pid: o.proc.PID, back: make(chan struct{}), taken: newAnswer()}
		c := lend{newAnswer(), l}
		if !o.box.post(c) {
			continue // the owner has ended
		}
		if err := c.wait(); err != nil {
			return loans, err
		}
		loans = append(loans, l)
	}
	return loans, nil
}

// end returns a process to its owner.
func (l *loan) end() error {
	close(l.back)
	return l.taken.wait()
}

// lend is the command to an owner to lend its process and to wait until it gets the process
// back. Commands that come in meanwhile wait.
type lend struct {
	*answer
	l *loan
}

func (c lend) do(o *owner) {
	err := o.lending.lendOut(c.l)
	c.give(err)
	if err != nil {
		return
	}
	<-c.l.back
	c.l.taken.give(o.lending.takeBack(c.l))
}

func (d *lending) lendOut(l *loan) error {
	if err := d.o.over(); err != nil {
		return err
	}
	if !d.o.needsTracing() {
		d.o.leave()
		l.untouched = true
		return nil
	}
	if err := d.o.tracer.attach(); err != nil {
		return err
	}
	d.o.tracer.freeze(nil) // until takeBack
	d.absorbStopped()
	d.o.family.releaseChildren()
	d.o.family.attendBirths()
	d.o.tracer.endRound()
	if err := d.lendable(); err != nil {
		d.o.tracer.thaw()
		return err
	}
	l.byOthers = d.stoppedByOthers()
	d.o.meeting.giveWayEverywhere()
	d.o.meeting.part()
	d.clear()
	err := d.lendable() // again, since threads have made calls
	if err == nil {
		err = d.holdStill(l)
	}
	if err != nil {
		d.restock()
		d.o.tracer.thaw()
		return err
	}
	for _, t := range d.o.tracer.threads {
		d.letGo(t)
	}
	return d.awaitStill(l)
}

// absorbStopped is absorb for threads that a group-stop has reached between a breakpoint and
// its signal; these could not be saved. They execute nothing of the program, and return to the
// group-stop when they are released.
func (d *lending) absorbStopped() {
	for _, t := range d.o.tracer.threads {
		if t.stop == groupStop && ptrace.WillTrap(t.tid) {
			t.stop, t.regroup = trapStop, true
		}
	}
	d.o.tracer.absorb(nil)
}

// lendable returns an error if a thread is in the middle of something that only its tracer can
// complete.
func (d *lending) lendable() error {
	for _, t := range d.o.tracer.threads {
		switch {
		case !t.stopped():
			return omis.Errorf(omis.OSError, "cannot save process %d: thread %d waits uninterruptibly in the kernel", d.o.proc.PID, t.tid)
		case t.kind > unobserved:
			return omis.Errorf(omis.OSError, "cannot save process %d: it is creating process %d; let that one go on first", d.o.proc.PID, t.tid)
		case t.stop == exitStop:
			return omis.Errorf(omis.OSError, "cannot save process %d: thread %d is ending", d.o.proc.PID, t.tid)
		case t.stop == eventStop:
			return omis.Errorf(omis.OSError, "cannot save process %d: thread %d is creating a thread or process, or executing a program; let it go on first", d.o.proc.PID, t.tid)
		}
	}
	return nil
}

// stoppedByOthers reports whether the process takes part in a group-stop, or is about to: the
// monitor's SIGCONT would end that as well.
func (d *lending) stoppedByOthers() bool {
	stop := proc.SignalBit(unix.SIGSTOP)
	for _, t := range d.o.tracer.threads {
		if t.groupStopped() {
			return true
		}
		if s, err := proc.ReadThreadStatus(t.pid, t.tid); err == nil && (s.Pending|s.Shared)&stop != 0 {
			return true
		}
	}
	return false
}

// clear removes what must not be in the image of a process: breakpoints and the handler.
// Memory without effect stays, because threads may be in it.
func (d *lending) clear() {
	if d.o.space.memory == nil {
		return
	}
	for _, b := range d.o.space.breakpoints {
		// Writing fails only if the process has ended, and CRIU will report that.
		_ = d.o.space.write(b.addr, []byte{b.original})
		_ = d.o.node.warden.Clear(d.o.proc.PID, b.addr)
		_ = d.o.space.enroll(b, false)
	}
	if d.o.steps.stepping {
		_ = d.o.space.write(d.o.space.home.Stepping(), word(0))
	}
	if d.o.space.armed {
		d.o.space.giveBack()
	}
}

// restock undoes clear.
func (d *lending) restock() {
	if d.o.space.memory == nil {
		return
	}
	if d.o.space.home != 0 && !d.o.space.armed && (d.o.steps.stepping || len(d.o.space.breakpoints) > 0) {
		d.o.masks.unblockAll()
		_ = d.o.space.install() // if it fails, masks.verify tries again
		d.o.space.armed = true
	}
	if d.o.steps.stepping {
		_ = d.o.space.write(d.o.space.home.Stepping(), word(1))
	}
	for _, b := range d.o.space.breakpoints {
		if d.o.space.tellWarden(b) == nil {
			_ = d.o.space.enroll(b, true)
			_ = d.o.space.write(b.addr, []byte{int3})
		}
	}
}

// letGo detaches from a thread, which has a pending SIGSTOP and so executes nothing.
func (d *lending) letGo(t *thread) {
	if t.stop == entryStop {
		var regs ptrace.Regs
		if ptrace.GetRegs(t.tid, &regs) == nil {
			t.interrupted.push(interruptedCall{t.call, regs.Rsp, regs.Rip})
			regs = resident.Reissued(regs)
			_ = ptrace.SetRegs(t.tid, &regs)
		}
	}
	d.o.masks.reblock(t)
	t.clearFlag()
	_ = ptrace.Detach(t.tid, 0)
	t.stop, t.asked, t.regroup, t.options = running, false, false, 0
}

// takeBack is the end of a loan.
func (d *lending) takeBack(l *loan) error {
	if l.untouched {
		return nil
	}
	defer d.o.tracer.thaw()
	if err := d.seizeAgain(); err != nil {
		d.moveOn(l)
		return err
	}
	d.o.tracer.interruptAll(nil)
	d.o.tracer.pump(patience, func() bool { return d.o.tracer.still(nil) })
	d.moveOn(l)
	d.restock()
	for _, t := range d.o.tracer.threads {
		d.forgetDelivered(t)
	}
	return nil
}

// seizeAgain attaches to the threads in the table. None can be new, but some may have been
// killed.
func (d *lending) seizeAgain() error {
	for _, t := range d.o.tracer.threads {
		switch err := d.o.tracer.seizeThread(t.tid); {
		case err == nil:
		case err == unix.ESRCH || threadEnded(t.pid, t.tid):
			d.o.tracer.forget(t)
		default:
			return omis.Errorf(omis.OSError|omis.Fatal, "process %d is not observed any more: %v", d.o.proc.PID, d.o.tracer.refused(err))
		}
	}
	return nil
}

// forgetDelivered forgets the signal that a thread was held for if the thread has received it
// meanwhile.
func (d *lending) forgetDelivered(t *thread) {
	sig := t.received.signal
	if sig == 0 || isFault(sig, t.received.info.Code) {
		return
	}
	s, err := proc.ReadThreadStatus(t.pid, t.tid)
	if err == nil && s.Pending&proc.SignalBit(unix.Signal(sig)) == 0 {
		t.received = received{}
	}
}

// awaitStill waits until the last thread has stopped.
func (d *lending) awaitStill(l *loan) error {
	const pause = time.Millisecond
	var late *thread
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if late = d.unstopped(); late == nil {
			return nil
		}
	}
	state, _ := proc.ThreadState(late.pid, late.tid)
	err := omis.Errorf(omis.OSError, "cannot save process %d: thread %d does not stop (it is in state %q)", d.o.proc.PID, late.tid, state)
	if lost := d.takeBack(l); lost != nil {
		return lost
	}
	return err
}

// unstopped returns a thread that job control has not stopped yet.
func (d *lending) unstopped() *thread {
	for _, t := range d.o.tracer.threads {
		if s, err := proc.ThreadState(t.pid, t.tid); err == nil && s != "T" && s != "Z" && s != "X" {
			return t
		}
	}
	return nil
}
