//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
)

// A thread that is to make a call for us may take long: a signal handler of the program,
// which runs first, may wait for a thread that we have stopped. Then it is not waited
// for. It goes on through the handler, makes its call, and comes back to where it was;
// nobody is told of that, and nothing goes that it needs on its way.

// makesCall tells whether a thread makes a call for us that is waited for.
func (t *thread) makesCall() bool { return t.injection != nil && !t.injection.abandoned }

// atAbandoned tells whether a thread is at the entry to or the exit from a system call
// that was not waited for.
func (t *thread) atAbandoned(info *ptrace.SyscallInfo) bool {
	in := t.injection
	if in == nil || info.IP <= in.begin || info.IP > in.at || info.SP != in.sp {
		return false
	}
	if !in.sweep && info.Op == ptrace.SyscallExit && !isRestart(info.Result()) {
		t.injection = in.outer
	}
	return true
}

// sweptLate tells whether the signal that a thread is stopped for is that of the end of a
// sweep that was not waited for.
func (t *thread) sweptLate(sig int) bool {
	in := t.injection
	if in == nil || !in.sweep || sig != int(unix.SIGTRAP) || !in.isAtEnd(t, &ptrace.Regs{}) {
		return false
	}
	t.injection = in.outer
	return true
}

// awaitsSweep tells whether some thread is on its way through a sweep, at whose end it
// takes the resident handler or us.
func (j *injector) awaitsSweep() bool {
	for _, t := range j.o.tracer.threads {
		for in := t.injection; in != nil; in = in.outer {
			if in.sweep {
				return true
			}
		}
	}
	return false
}
