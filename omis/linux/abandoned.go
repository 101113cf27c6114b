//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
)

// A call that a thread makes for the monitor may take long: a signal handler of the program,
// which runs first, may wait for a thread that the monitor has stopped. Then the owner
// abandons the call, which means that it does not wait for it. The thread goes through the
// handler, makes its call, and returns to where it was. These system calls are not reported,
// and what the thread needs for them stays.

// makesCall reports whether a thread makes a call for the monitor that its owner waits for.
func (t *thread) makesCall() bool { return t.injection != nil && !t.injection.abandoned }

// atAbandoned reports whether a thread is at the entry to or the exit from an abandoned call.
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

// sweptLate reports whether the signal that a thread is stopped for marks the end of an
// abandoned sweep.
func (t *thread) sweptLate(sig int) bool {
	in := t.injection
	if in == nil || !in.sweep || sig != int(unix.SIGTRAP) || !in.isAtEnd(t, &ptrace.Regs{}) {
		return false
	}
	t.injection = in.outer
	return true
}

// awaitsSweep reports whether a thread has an abandoned sweep before it, at whose end it needs
// the resident handler or the owner.
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
