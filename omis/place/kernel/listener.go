//go:build linux && amd64

package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// listener is a program.Placed: a program at an event of the kernel.
type listener struct {
	events  *events
	on      *watched
	point   point
	program program.Program
	code    code.Listener
	lasts   bool // it outlives the monitor
}

var _ program.Placed = (*listener)(nil)

// Verdict: see program.Placed.
func (l *listener) Verdict() program.Verdict { return l.point.verdict() }

// Stands: see program.Placed. System calls are the same in every program that the process executes.
func (l *listener) Stands() bool { return proc.Alive(l.on.proc) == nil }

// Covers: see program.Placed.
func (l *listener) Covers(uint64) bool { return false }

// Lingers: see program.Placed.
func (l *listener) Lingers() bool { return false }

// SetActive: see program.Placed.
func (l *listener) SetActive(active bool) {
	var v uint64
	if active {
		v = 1
	}
	l.events.memory.slab.Word(l.code.Active, 0).Store(v)
}

// orphan describes a leftover listener that no request has adopted.
func (l *listener) orphan() program.Orphan {
	return program.Orphan{Proc: l.on.proc, What: fmt.Sprintf("a program at events of the kernel (%v)", l.point)}
}

// Kinds of places at events, and their costs in nanoseconds, measured on a virtual machine with a Zen 4
// processor. At a system call the cost is mostly that of the tracepoints on the way into the kernel and
// out of it.
const (
	atCall     = "call"
	atEnd      = "callend"
	atSwitch   = "switch"
	costIn     = 240
	costOut    = 330
	costSwitch = 500
)

func (at point) verdict() program.Verdict {
	if code.IsScheduling(at.kind) {
		return program.Verdict{
			Name: Name, Where: "in the kernel, at its tracepoints for scheduling; no thread is held", Kind: atSwitch, Cost: costSwitch,
			Why: "its actions only count and measure time",
		}
	}
	v := program.Verdict{
		Name: Name, Where: "in the kernel, at its tracepoint for system calls; no thread is held", Kind: atCall, Cost: costIn,
		Why: "its actions only count and measure time",
	}
	if at.kind == node.EventSysCallEnded || !isNeverRestarted(at.number) {
		v.Kind, v.Cost = atEnd, costOut
	}
	return v
}

// isNeverRestarted reports whether a system call can never be interrupted, because it waits for nothing.
// The kernel never restarts such a call, so its end need not be observed to count it once.
func isNeverRestarted(number int) bool {
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
