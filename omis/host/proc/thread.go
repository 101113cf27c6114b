//go:build linux

package proc

import (
	"fmt"
	"os"
	"time"

	"mirador/omis"
	"mirador/omis/node"
)

// threadStatFields are the components in a thread's stat file.
const threadStatFields = node.ThreadSchedulingState | node.ThreadPriority | node.ThreadSystemTime | node.ThreadName

// The files of a thread with its usage. The task iterator (crowd) reads none of these components.
const (
	threadStatUsage   = node.ThreadUserTime | node.ThreadMinorPageFaults | node.ThreadMajorPageFaults
	threadStatusUsage = node.ThreadVolContSwitch | node.ThreadInvolContSwitch
	threadIOUsage     = node.ThreadReadBytes | node.ThreadWrittenBytes | node.ThreadFileInput | node.ThreadFileOutput
	threadTimes       = node.ThreadTotalTime | node.ThreadQueuedTime
)

// Threads lists the threads of a process in ascending order.
func Threads(pid int) ([]int, error) {
	tids, err := threads(pid)
	if err != nil {
		tids, err = threads(pid) // the process may be executing a program, see Alive
	}
	return tids, err
}

func threads(pid int) ([]int, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, ended(pid)
	}
	defer dir.Close()
	tids, err := numbered(int(dir.Fd()), make([]byte, 4096))
	if err != nil {
		return nil, ended(pid)
	}
	return tids, nil
}

// Threads lists the threads of a process in ascending order, and closes the files of
// ended ones.
func (r *Reader) Threads(p omis.ProcID) ([]int, error) {
	q, err := r.ask(p)
	if err != nil {
		return nil, err
	}
	tids, err := q.threads()
	if err != nil {
		err = readError(p.PID, err)
	} else {
		r.keepThreads(q.k, tids)
	}
	return tids, q.end(err)
}

// ThreadInfo reads the components in f. Parent stays 0, because /proc does not show the
// creator of a thread.
func (r *Reader) ThreadInfo(p omis.ProcID, tid int, f node.ThreadFields) (node.ThreadInfo, error) {
	var info node.ThreadInfo
	q, err := r.ask(p)
	if err != nil {
		return info, err
	}
	if f&(threadStatFields|threadStatUsage) != 0 {
		err = q.threadStat(tid, f, &info)
	}
	if err == nil && f&threadStatusUsage != 0 {
		err = q.threadSwitches(tid, &info)
	}
	if err == nil && f&threadIOUsage != 0 {
		err = q.threadIO(tid, &info)
	}
	// If no component is asked for, the cheapest file shows whether the thread exists.
	if err == nil && (f&threadTimes != 0 || f&threadStatFields == 0) {
		err = q.threadTime(tid, &info)
	}
	if err == nil && f&node.ThreadStackSize != 0 {
		info.StackSize = stackSize(p.PID, tid)
	}
	switch {
	case err == nil: // the files read belong to this thread, so it exists
		q.done()
		return info, nil
	case vanished(err):
		err = noThread(p.PID, tid)
	default:
		err = readError(p.PID, err)
	}
	return info, q.end(err)
}

func (q query) threadStat(tid int, f node.ThreadFields, info *node.ThreadInfo) error {
	text, err := q.read(fileID{tid, statFile})
	if err != nil {
		return err
	}
	s, err := parseStat(text)
	if err != nil {
		return err
	}
	if f&node.ThreadName != 0 {
		info.Name = string(s.name)
	}
	info.State = schedulingState(s.state)
	info.Priority = s.nice
	info.SystemTime, info.UserTime = ofTicks(s.systemTime), ofTicks(s.userTime)
	info.MinorFaults, info.MajorFaults = s.minorFaults, s.majorFaults
	return nil
}

func (q query) threadSwitches(tid int, info *node.ThreadInfo) error {
	text, err := q.read(fileID{tid, statusFile})
	if err != nil {
		return err
	}
	s := parseStatus(text)
	info.VoluntarySwitches, info.InvoluntaryOnes = s.Voluntary, s.Preemptive
	return nil
}

func (q query) threadIO(tid int, info *node.ThreadInfo) error {
	text, err := q.read(fileID{tid, ioFile})
	if err != nil {
		return err
	}
	parseIO(text, &info.Usage)
	return nil
}

// threadTime reads the processor time of a thread, exact to the nanosecond.
func (q query) threadTime(tid int, info *node.ThreadInfo) error {
	text, err := q.read(fileID{tid, schedstatFile})
	if err != nil {
		return err
	}
	info.TotalTime, info.QueuedTime = time.Duration(Number(text)), queuedTime(text)
	return nil
}

func noThread(pid, tid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has no thread %d", pid, tid)
}

// stackSize returns the size of a blocked thread's stack, -1 for other threads: the
// kernel shows only the stack pointers of blocked ones.
func stackSize(pid, tid int) int64 {
	sp, ok := blockedAt(pid, tid)
	if !ok {
		return -1
	}
	size, err := StackSize(pid, sp)
	if err != nil {
		return -1
	}
	return size
}

// blockedAt returns the stack pointer of a thread if it is blocked.
func blockedAt(pid, tid int) (sp uint64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return 0, false
	}
	return stackPointer(string(b))
}

// BlockedStackSizes returns the sizes of the stacks of those threads that are blocked. It reads
// the mappings of the process once.
func BlockedStackSizes(pid int, tids []int) map[int]int64 {
	maps, err := Maps(pid)
	if err != nil {
		return nil
	}
	sizes := make(map[int]int64, len(tids))
	for _, tid := range tids {
		if sp, ok := blockedAt(pid, tid); ok {
			if m, ok := maps.At(sp); ok {
				sizes[tid] = int64(m.End - m.Start)
			}
		}
	}
	return sizes
}

// StackSize returns the size of the mapping that contains a stack pointer, -1 if there is
// none.
func StackSize(pid int, sp uint64) (int64, error) {
	maps, err := Maps(pid)
	if err != nil {
		return -1, err
	}
	if m, ok := maps.At(sp); ok {
		return int64(m.End - m.Start), nil
	}
	return -1, nil
}

// ThreadState returns the state letter of a thread.
func ThreadState(pid, tid int) (string, error) {
	s, err := readThreadStat(pid, tid)
	if err != nil {
		return "", noThread(pid, tid)
	}
	return string(s.state), nil
}

// ThreadStart returns the start time of a thread in clock ticks since boot, which differs
// from that of a later thread with the same number.
func ThreadStart(pid, tid int) (uint64, error) {
	s, err := readThreadStat(pid, tid)
	if err != nil {
		return 0, noThread(pid, tid)
	}
	return s.start, nil
}

// Parent returns the parent of a process, 0 if the process has ended.
func Parent(pid int) int {
	s, err := readStat(pid)
	if err != nil {
		return 0
	}
	return s.parent
}
