//go:build linux && amd64

package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"

	"mirador/omis"
)

const (
	threadStatFields = omis.ThreadSchedulingState | omis.ThreadTotalTime | omis.ThreadPriority | omis.ThreadSystemTime | omis.ThreadName
)

// Threads lists the threads of a process in ascending order.
func Threads(pid int) ([]int, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, ended(pid)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, ended(pid)
	}
	tids := make([]int, 0, len(names))
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids, nil
}

// ThreadInfo reads what f asks for. The thread that created another is not to
// be had from /proc: Parent stays 0.
func ThreadInfo(p omis.ProcID, tid int, f omis.ThreadFields) (omis.ThreadInfo, error) {
	if err := Alive(p); err != nil {
		return omis.ThreadInfo{}, err
	}
	fsp, err := threadOf(p.PID, tid)
	if err != nil {
		return omis.ThreadInfo{}, err
	}
	var info omis.ThreadInfo
	if f&threadStatFields != 0 {
		s, err := fsp.Stat()
		if err != nil {
			return info, noThread(p.PID, tid)
		}
		info.Name = s.Comm
		info.State = schedulingState(s.State)
		info.Priority = int64(s.Priority)
		info.SystemTime = float64(s.STime) / userHz
		info.TotalTime = float64(s.UTime+s.STime) / userHz
	}
	if f&omis.ThreadTotalTime != 0 {
		// Exact where the kernel was built with it.
		if s, err := fsp.Schedstat(); err == nil {
			info.TotalTime = float64(s.RunningNanoseconds) / 1e9
		}
	}
	if f&omis.ThreadStackSize != 0 {
		info.StackSize = stackSize(p.PID, tid)
	}
	return info, nil
}

func threadOf(pid, tid int) (procfs.Proc, error) {
	fsys, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.Proc{}, omis.Errorf(omis.OSError, "cannot read /proc: %v", err)
	}
	t, err := fsys.Thread(pid, tid)
	if err != nil {
		return procfs.Proc{}, noThread(pid, tid)
	}
	return t, nil
}

func noThread(pid, tid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has no thread %d", pid, tid)
}

// stackSize is the size of the mapping that the thread's stack pointer lies in;
// the kernel shows that pointer of blocked threads only. -1: not known.
func stackSize(pid, tid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return -1
	}
	sp, ok := stackPointer(string(b))
	if !ok {
		return -1
	}
	maps, err := Maps(pid)
	if err != nil {
		return -1
	}
	if m, ok := maps.At(sp); ok {
		return int64(m.End - m.Start)
	}
	return -1
}

// ThreadState is the state letter of a thread.
func ThreadState(pid, tid int) (string, error) {
	t, err := threadOf(pid, tid)
	if err != nil {
		return "", err
	}
	s, err := t.Stat()
	return s.State, err
}

// ThreadStart tells one thread from a later one of the same number: when it
// started, in clock ticks since boot.
func ThreadStart(pid, tid int) (uint64, error) {
	t, err := threadOf(pid, tid)
	if err != nil {
		return 0, err
	}
	s, err := t.Stat()
	return s.Starttime, err
}

// Parent is the parent of a process, 0 when it is gone.
func Parent(pid int) int {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	s, err := p.Stat()
	if err != nil {
		return 0
	}
	return s.PPID
}
