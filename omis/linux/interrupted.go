//go:build linux && amd64

package linux

import (
	"slices"

	"golang.org/x/sys/unix"
)

// interrupted are the system calls of a thread that a signal, a stop or the monitor
// interrupted, the innermost last: the handler of a signal makes calls as well. Such a
// call is made again at once, or after rt_sigreturn; or it has failed with EINTR when
// that returns. Either way it is one call for who looks out for calls. Which call is
// made again tell the stack pointer and the address behind it.
type interrupted struct {
	calls []interruptedCall
	state interruptedState
	left  bool // the innermost was left for a function that returns to it without rt_sigreturn
}

type interruptedCall struct {
	systemCall
	sp, ip uint64
}

type interruptedState uint8

const (
	elsewhere interruptedState = iota // in a handler, or back from it
	expected                          // the next call is the innermost of these, again
	again                             // in that call
)

// mostInterrupted bounds how many calls are remembered: those that a handler left by a
// longjmp stay until there is no room.
const mostInterrupted = 16

// push notes that a call was interrupted, or is to be.
func (s *interrupted) push(c interruptedCall) {
	if s.state != again {
		if len(s.calls) == mostInterrupted {
			s.calls = slices.Delete(s.calls, 0, 1)
		}
		s.calls = append(s.calls, c)
	}
	s.state = expected
}

// leave notes that the thread leaves the innermost call for a function that it was made to
// call, and which returns to that call.
func (s *interrupted) leave() { s.left = len(s.calls) > 0 }

// starts tells whether a call that the thread is about to make is a new one.
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

// ends tells which call comes to its end when one returns; false: none does.
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
