//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Turns is how often a thread was given a processor.
func Turns(pid, tid int) (uint64, error) { return schedstat(pid, tid, 2) }

// schedstat reads a field of what the scheduler says of a thread.
func schedstat(pid, tid, field int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 3 {
		return 0, fmt.Errorf("the kernel does not say how often thread %d ran", tid)
	}
	return strconv.ParseUint(string(fields[field]), 10, 64)
}

const (
	// restsWithin is how long a thread is waited for that is about to rest: it may have to
	// wait for a processor first.
	restsWithin = 30 * time.Second
	restsPoll   = 20 * time.Microsecond
)

// RestingCPUTime is the CPU time of a thread that rests or is about to, in nanoseconds. Of
// a thread that runs the kernel says what it had been given at the last tick; that it does
// not run any more shows where its system call is asked for.
func RestingCPUTime(pid, tid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid)
	for late := time.Now().Add(restsWithin); ; time.Sleep(restsPoll) {
		b, err := os.ReadFile(path)
		switch {
		case os.IsNotExist(err):
			return 0, noThread(pid, tid)
		case err != nil:
			return 0, fmt.Errorf("cannot tell whether thread %d rests: %w", tid, err)
		case !bytes.HasPrefix(b, []byte("running")):
			used, err := schedstat(pid, tid, 0)
			if err != nil {
				return 0, fmt.Errorf("the kernel does not say the CPU time of thread %d: %w", tid, err)
			}
			return int64(used), nil
		case time.Now().After(late):
			return 0, fmt.Errorf("thread %d does not come to rest within %v, so its CPU time is not known", tid, restsWithin)
		}
	}
}
