//go:build linux

package tasks

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Task is a thread as the kernel describes it. Times are nanoseconds.
type Task struct {
	TID   int    // in the monitor's pid namespace; 0 if it has just ended
	Start uint64 // since boot; differs from that of a later thread with the same number
	State byte   // the letter that /proc shows
	Nice  int64
	Ran   uint64 // time on processors, as in schedstat
	Name  [nameSize]byte

	ticked, shown modes
}

// modes are the times in user and kernel mode.
type modes struct{ user, system uint64 }

const nameSize = 16 // TASK_COMM_LEN

// nice0 is the static priority for nice 0 (DEFAULT_PRIO).
const nice0 = 120

// parse parses a record without the name.
func parse(record []byte) (t Task) {
	long := func(at int) uint64 { return binary.LittleEndian.Uint64(record[at:]) }
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(record[at:]) }
	t.TID = int(word(recordTID))
	t.Start = long(recordStart)
	t.State = letter(word(recordState), word(recordExit))
	t.Nice = int64(int32(word(recordPriority))) - nice0
	t.Ran = long(recordRan)
	t.ticked = modes{long(recordUser), long(recordSystem)}
	t.shown = modes{long(recordShownUser), long(recordShownSystem)}
	return t
}

// States of a task (sched.h), other than those with a letter of their own.
const (
	reported      = 1<<7 - 1
	uninterrupted = 1 << 1
	noLoad        = 1 << 10
	lockWait      = 1 << 12 // on real-time kernels
	frozen        = 1 << 15
)

// letter computes the state letter like task_state_index in the kernel.
func letter(state, exit uint32) byte {
	const idle = uninterrupted | noLoad
	switch {
	case state&(lockWait|frozen) != 0:
		return 'D'
	case state&idle == idle:
		return 'I'
	}
	return "RSDTtXZP"[bits.Len32((state|exit)&reported)]
}

// CommandName returns the name without the zero bytes.
func (t *Task) CommandName() string {
	name, _, _ := bytes.Cut(t.Name[:], []byte{0})
	return string(name)
}

// System returns the time in kernel mode as cputime_adjust computes it for /proc: the
// timer's ticks only divide the exact time, and neither part is less than /proc has shown
// before.
func (t *Task) System() uint64 {
	if t.shown.user+t.shown.system >= t.Ran {
		return t.shown.system
	}
	var system uint64
	switch {
	case t.ticked.system == 0:
	case t.ticked.user == 0:
		system = t.Ran
	default:
		system = scale(t.ticked.system, t.Ran, t.ticked.user+t.ticked.system)
	}
	system = max(system, t.shown.system)
	return min(system, t.Ran-min(t.Ran, t.shown.user))
}

// scale returns a*b/c with an intermediate result of 128 bits; a is not greater than c.
func scale(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, c)
	return quotient
}
