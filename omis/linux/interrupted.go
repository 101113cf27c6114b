//go:build linux && amd64

package linux

import (
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// interrupted are the system calls of a thread that a signal, a stop or the monitor
// interrupted, the innermost last, since signal handlers make calls as well. Such a call is
// repeated at once or after rt_sigreturn, or has failed with EINTR when rt_sigreturn returns.
// In all cases it is one call for the watches. A repeated call is recognised by the stack
// pointer and the address behind it.
type interrupted struct {
	calls []interruptedCall
	state interruptedState
	left  bool // the thread left the innermost call for a function that returns to it without rt_sigreturn
}

type interruptedCall struct {
	systemCall
	sp, ip uint64
}

type interruptedState uint8

const (
	elsewhere interruptedState = iota // in a handler, or back from it
	expected                          // the next call repeats the innermost of these
	again                             // in that call
)

// mostInterrupted bounds how many calls are remembered. Calls that a handler left by a longjmp
// are forgotten only when there is no room.
const mostInterrupted = 16

// follow is called before a stopped thread continues with its system calls watched. A call that began before and was
// interrupted by the stop is no new one when the thread repeats it.
func (t *thread) follow() {
	if t.followed {
		return
	}
	t.followed = true
	var regs ptrace.Regs
	if t.stop == trapStop && ptrace.GetRegs(t.tid, &regs) == nil {
		t.cutShort(&regs)
	}
}

// unfollow is called before a thread continues without that: nothing is known about its next calls.
func (t *thread) unfollow() {
	if t.followed {
		t.followed, t.call, t.interrupted = false, systemCall{}, interrupted{}
	}
}

// cutShort records the call that the stop has interrupted, if there is one.
func (t *thread) cutShort(regs *ptrace.Regs) {
	if resident.InSyscall(regs) && isRestart(int64(regs.Rax)) {
		t.interrupted.push(interruptedCall{systemCall{number: int(int32(regs.Orig_rax))}, regs.Rsp, regs.Rip})
	}
}

// push records that a call was interrupted, or will be.
func (s *interrupted) push(c interruptedCall) {
	if s.state != again {
		if len(s.calls) == mostInterrupted {
			s.calls = slices.Delete(s.calls, 0, 1)
		}
		s.calls = append(s.calls, c)
	}
	s.state = expected
}

// leave records that the thread leaves the innermost call for a function that returns to that
// call.
func (s *interrupted) leave() { s.left = len(s.calls) > 0 }

// starts reports whether a call that the thread is about to make is a new one.
func (s *interrupted) starts(c interruptedCall) bool {
	restart := c.number == unix.SYS_RESTART_SYSCALL
	if (s.state == expected || s.left) && len(s.calls) > 0 {
		s.state = elsewhere
		if top := s.calls[len(s.calls)-1]; top.sp == c.sp && top.ip == c.ip && (restart || top.number == c.number) {
			s.state, s.left = again, false
			return false
		}
	}
	return !restart
}

// ends returns the call that ends when a system call returns, and false if none does.
func (s *interrupted) ends(c interruptedCall, result int64) (systemCall, bool) {
	n := len(s.calls)
	switch {
	case isRestart(result):
		if s.state == again || c.number != unix.SYS_RESTART_SYSCALL {
			s.push(c)
		}
		return c.systemCall, false
	case s.state == again:
		return s.pop(), true
	case c.number == unix.SYS_RT_SIGRETURN:
		for n > 0 && s.calls[n-1].sp != c.sp {
			n--
		}
		if n == 0 {
			return c.systemCall, true
		}
		s.calls = s.calls[:n]
		if result == -int64(unix.EINTR) {
			return s.pop(), true
		}
		s.state = expected
	}
	return c.systemCall, c.number != unix.SYS_RESTART_SYSCALL
}

func (s *interrupted) pop() systemCall {
	last := len(s.calls) - 1
	c := s.calls[last].systemCall
	s.calls, s.state = s.calls[:last], elsewhere
	return c
}
