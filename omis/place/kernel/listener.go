//go:build linux && amd64

package kernel

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// listener is an program.Placed: a program at an event of the kernel.
type listener struct {
	placer *Placer
	on     *watched
	point  point
	only   []thread
	socket bool // only system calls on sockets are meant
	steps  program.Program
	active unit
	lasts  bool // it outlives the monitor
}

var _ program.Placed = (*listener)(nil)

// body assembles the program that does what some listeners want.
func (e *events) body(list []*listener) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(told, asm.R1), asm.StoreImm(asm.RFP, stackZero, 0, asm.Word)}
	shapes := make([]*shape, len(list))
	for i, l := range list {
		shapes[i] = shapeOf(l.steps, nil)
	}
	code = append(code, (&assembler{layout: e.layout}).hit(shapes...)...)
	code = append(code, e.layout.thread(end)...)
	for i, l := range list {
		code = append(code, e.part(l, fmt.Sprint("listener", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// part is what one of several listeners does.
func (e *events) part(l *listener, name string) asm.Instructions {
	a := assembler{layout: e.layout, slab: e.slab, pools: e.pools, fixed: l.steps, event: true, timed: isScheduling(l.point.kind), loads: loadsOf(l.steps)}
	over := name + "over"
	code := asm.Instructions{
		e.slab.at(asm.R1, l.active),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, over),
	}
	code = append(code, l.filter(name, over)...)
	if l.socket {
		code = append(code, e.layout.onSocket(over)...)
	}
	for i, s := range l.steps {
		code = append(code, a.step(s.Do, takesCPU(s), kindOf(s), i, fmt.Sprint(name, "step", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(over))
}

// filter goes over for threads that were not asked for. Its labels begin with a name.
func (l *listener) filter(name, over string) asm.Instructions {
	if len(l.only) == 0 {
		return nil
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.Div.Imm(asm.R2, nsPerTick),
	}
	for i, t := range l.only {
		other := fmt.Sprint(name, "thread", i)
		code = append(code,
			asm.JNE.Imm(asm.R1, int32(t.tid), other),
			asm.LoadImm(asm.R3, int64(t.ticks), asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R3, name+"meant"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	return append(code, asm.Ja.Label(over), asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"meant"))
}

func (l *listener) Verdict() program.Verdict { return l.point.verdict() }

// Stands: a system call is the same in whatever program the process executes.
func (l *listener) Stands() bool { return proc.Alive(l.on.proc) == nil }

func (l *listener) Covers(uint64) bool { return false }

func (l *listener) Lingers() bool { return false }

func (l *listener) SetActive(active bool) {
	var v uint64
	if active {
		v = 1
	}
	l.placer.slab.word(l.active, 0).Store(v)
}

// Kinds of places for events of the kernel, and what they cost, as measured on a Zen 4
// virtual machine: a processor on its way into the kernel and out of it looks for
// programs at tracepoints.
const (
	atCall     = "call"
	atEnd      = "callend"
	atSwitch   = "switch"
	costIn     = 240
	costOut    = 330
	costSwitch = 500
)

func (at point) verdict() program.Verdict {
	if isScheduling(at.kind) {
		return program.Verdict{
			Name: Name, Where: "in the kernel, at its tracepoints for scheduling; nobody is held", Kind: atSwitch, Cost: costSwitch,
			Why: "its actions only count and measure time",
		}
	}
	v := program.Verdict{
		Name: Name, Where: "in the kernel, at its tracepoint for system calls; nobody is held", Kind: atCall, Cost: costIn,
		Why: "its actions only count and measure time",
	}
	if at.kind == node.EventSysCallEnded || !isNeverMadeAgain(at.number) {
		v.Kind, v.Cost = atEnd, costOut
	}
	return v
}

// isNeverMadeAgain tells that a system call cannot be interrupted, so that the kernel
// never makes it again: it waits for nothing, and nobody else's code is asked.
func isNeverMadeAgain(number int) bool {
	switch number {
	case unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGRP, unix.SYS_GETPGID, unix.SYS_GETSID,
		unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
		unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES,
		unix.SYS_GETTIMEOFDAY, unix.SYS_TIME, unix.SYS_TIMES, unix.SYS_GETCPU, unix.SYS_GETRUSAGE, unix.SYS_UMASK,
		unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPENDING,
		unix.SYS_SIGALTSTACK, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_ARCH_PRCTL, unix.SYS_BRK,
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_DUP, unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		return true
	}
	return false
}
