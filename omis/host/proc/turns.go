//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Turns returns how often a thread has been given a processor.
func Turns(pid, tid int) (uint64, error) { return schedstat(pid, tid, 2) }

// schedstat reads a field of a thread's scheduler statistics.
func schedstat(pid, tid, field int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 3 {
		return 0, fmt.Errorf("the kernel does not report how often thread %d ran", tid)
	}
	return strconv.ParseUint(string(fields[field]), 10, 64)
}

const (
	// restsWithin limits the wait for a thread to leave its processor; the thread may
	// have to wait for a processor before that.
	restsWithin = 30 * time.Second
	restsPoll   = 20 * time.Microsecond
)

// RestingCPUTime returns the CPU time, in nanoseconds, of a thread that waits or is about
// to. For a running thread the kernel reports only the time up to the last tick. The file
// syscall shows when the thread does not run any more.
func RestingCPUTime(pid, tid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid)
	for late := time.Now().Add(restsWithin); ; time.Sleep(restsPoll) {
		b, err := os.ReadFile(path)
		switch {
		case os.IsNotExist(err):
			return 0, noThread(pid, tid)
		case err != nil:
			return 0, fmt.Errorf("cannot find out whether thread %d waits: %w", tid, err)
		case !bytes.HasPrefix(b, []byte("running")):
			used, err := schedstat(pid, tid, 0)
			if err != nil {
				return 0, fmt.Errorf("the kernel does not report the CPU time of thread %d: %w", tid, err)
			}
			return int64(used), nil
		case time.Now().After(late):
			return 0, fmt.Errorf("thread %d still runs after %v, so its CPU time is not known", tid, restsWithin)
		}
	}
}
