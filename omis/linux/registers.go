//go:build linux && amd64

package linux

import (
	"errors"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/rendezvous"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
)

var _ node.Registers = (*Node)(nil)

const (
	intRegs = 20
	pcReg   = 16
)

// RegisterCounts: see node.Registers.
func (n *Node) RegisterCounts() (integer, floating int) { return intRegs, fpRegs }

// ReadIntRegs: see node.Registers. In a system call that the stop interrupted, rax has the
// value that the kernel keeps there, as in gdb.
func (n *Node) ReadIntRegs(p omis.ProcID, tid, first, count int) ([]uint64, error) {
	if err := inFile("integer", first, count, intRegs); err != nil {
		return nil, err
	}
	r := readInts{first, make([]uint64, count)}
	if o := n.owners.of(p); o != nil && o.meeting.read(tid, r) {
		return r.values, nil
	}
	if err := n.owners.visit(p, tid, r); err != nil {
		return nil, err
	}
	return r.values, nil
}

// WriteIntRegs: see node.Registers. Writing the program counter aborts the current system
// call.
func (n *Node) WriteIntRegs(p omis.ProcID, tid, first int, values []uint64) error {
	if err := inFile("integer", first, len(values), intRegs); err != nil {
		return err
	}
	w := writeInts{first, values}
	if o := n.owners.of(p); o != nil && o.meeting.write(tid, w) {
		return nil
	}
	return n.owners.visit(p, tid, w)
}

// Goto: see node.Registers.
func (n *Node) Goto(p omis.ProcID, tid int, addr uint64) error {
	return n.owners.visit(p, tid, writeInts{pcReg, []uint64{addr}})
}

func inFile(kind string, first, count, size int) error {
	if first < 0 || count < 0 || first > size || count > size-first {
		return omis.Errorf(omis.ParameterError, "there are no %s registers %d to %d: they are numbered from 0 to %d", kind, first, first+count-1, size-1)
	}
	return nil
}

// numbered returns the registers in the order of their numbers.
func numbered(r *ptrace.Regs) []*uint64 {
	return []*uint64{
		&r.Rax, &r.Rdx, &r.Rcx, &r.Rbx, &r.Rsi, &r.Rdi, &r.Rbp, &r.Rsp,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
		&r.Rip, &r.Eflags, &r.Fs_base, &r.Gs_base,
	}
}

// readRegs reads the registers of a stopped thread; shown is what the program would have in
// them without the monitor.
func (o *owner) readRegs(t *thread) (regs, shown ptrace.Regs, err error) {
	if err := ptrace.GetRegs(t.tid, &regs); err != nil {
		return regs, regs, o.regsError(t, err)
	}
	shown = regs
	shown.Rip = o.space.inPlace(regs.Rip)
	if t.stepper.used {
		shown.Eflags &^= trapFlag
	}
	return regs, shown, nil
}

func (o *owner) regsError(t *thread, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		return omis.Errorf(omis.UnknownObject, "thread %d of process %d has ended", t.tid, o.proc.PID)
	}
	return omis.Errorf(omis.ParameterError, "the registers of thread %d cannot have these values: %w", t.tid, err)
}

type readInts struct {
	first  int
	values []uint64
}

func (e readInts) at(o *owner, t *thread) error {
	_, shown, err := o.readRegs(t)
	if err != nil {
		return err
	}
	for i, r := range numbered(&shown)[e.first : e.first+len(e.values)] {
		e.values[i] = *r
	}
	return nil
}

type writeInts struct {
	first  int
	values []uint64
}

func (e writeInts) at(o *owner, t *thread) error {
	regs, shown, err := o.readRegs(t)
	if err != nil {
		return err
	}
	if t.stop == exitStop {
		return errAtEnd(t)
	}
	now := shown
	for i, r := range numbered(&now)[e.first : e.first+len(e.values)] {
		*r = e.values[i]
	}
	return o.setRegs(t, regs, shown, now)
}

// setRegs sets the registers of a thread; regs and shown are the results of readRegs. The
// kernel checks the registers one after the other, so setRegs undoes a refused change.
func (o *owner) setRegs(t *thread, regs, shown, now ptrace.Regs) error {
	if now.Rip == shown.Rip {
		now.Rip = regs.Rip
	} else {
		resident.GiveUp(&now)
	}
	err := ptrace.SetRegs(t.tid, &now)
	if err != nil {
		_ = ptrace.SetRegs(t.tid, &regs)
		return o.regsError(t, err)
	}
	return nil
}

// read reads registers of a thread that is held by rendezvous.
func (m *meeting) read(tid int, e readInts) bool {
	if e.first+len(e.values) > len(rendezvous.Registers{}) {
		return false // only ptrace knows the segment bases
	}
	return m.registers(tid, func(r *rendezvous.Registers) { copy(e.values, r[e.first:]) })
}

// write writes registers of a thread that is held by rendezvous. It refuses those that the
// kernel must check, which ptrace writes.
func (m *meeting) write(tid int, e writeInts) bool {
	end := e.first + len(e.values)
	if end > rendezvous.RIP || e.first <= rendezvous.RSP && rendezvous.RSP < end {
		return false
	}
	return m.registers(tid, func(r *rendezvous.Registers) { copy(r[e.first:end], e.values) })
}
