//go:build linux

package proc

import (
	"golang.org/x/sys/unix"
	"time"

	"mirador/omis"
	"mirador/omis/host/tasks"
	"mirador/omis/node"
)

const (
	// crowdStat are the components that reading processes at once can answer.
	crowdStat = node.ProcSchedulingState | node.ProcTotalTime | node.ProcPriority | node.ProcSystemTime
	// crowdKnown are the components that need no reading.
	crowdKnown = node.ProcGlobalID | node.ProcLocalID | node.ProcMessageQueue | node.ProcNode | node.ProcIntResidentSize | node.ProcSwaps
	// crowdSizes are also accepted: they come from a file of the process, which is cheap
	// to read.
	crowdSizes = node.ProcMemorySize | node.ProcResidentSize
	// passed is the number of threads in the system that the eBPF program can skip in the
	// time of one process's files.
	passed = 16
)

// ProcInfos returns Info of processes in the order of the list. Elements that it cannot
// read, or not faster than their files, are nil; call Info for those.
func (r *Reader) ProcInfos(list []omis.ProcID, f node.ProcFields) []*node.ProcInfo {
	if f&crowdStat == 0 || f&^(crowdStat|crowdKnown|crowdSizes) != 0 || !pays(len(list), allThreads()) {
		return nil
	}
	return r.procInfosAtOnce(list, f)
}

// pays reports whether reading all processes at once is faster than the files of the
// processes asked about, if the machine has so many threads.
func pays(asked, threads int) bool { return asked >= fewest && threads <= passed*asked }

// procInfosAtOnce does the work of ProcInfos.
func (r *Reader) procInfosAtOnce(list []omis.ProcID, f node.ProcFields) []*node.ProcInfo {
	all := r.crowd.reader()
	if all == nil {
		return nil
	}
	at := make(map[omis.ProcID]int, len(list))
	for i, p := range list {
		at[p] = i
	}
	infos, told := make([]node.ProcInfo, len(list)), make([]*node.ProcInfo, len(list))
	err := all.ReadProcesses(func(p *tasks.Process) {
		id := omis.ProcID{PID: p.TID, Start: p.Start / tick}
		i, wanted := at[id]
		// With several threads, their times would have to be added up while some end and
		// others begin.
		if !wanted || p.Threads != 1 || over(p.State, p.Threads) {
			return
		}
		if r.crowdInfo(id, f, p, &infos[i]) == nil {
			told[i] = &infos[i]
		}
	})
	if err != nil {
		return nil
	}
	return told
}

// allThreads returns the number of threads on this machine.
func allThreads() int {
	var s unix.Sysinfo_t
	_ = unix.Sysinfo(&s) // it cannot fail
	return int(s.Procs)
}

// crowdInfo converts the components in f of a process that was read.
func (r *Reader) crowdInfo(id omis.ProcID, f node.ProcFields, p *tasks.Process, info *node.ProcInfo) error {
	*info = unread()
	info.State, info.Priority = schedulingState(p.State), p.Nice
	info.TotalTime = time.Duration(p.Ran)
	if f&(node.ProcSystemTime|crowdSizes) == 0 {
		return nil
	}
	q, err := r.ask(id)
	if err != nil {
		return err
	}
	defer q.done()
	if f&node.ProcSystemTime != 0 {
		info.SystemTime = q.notLess(int64(p.System() / tick))
	}
	if f&crowdSizes != 0 {
		err = q.sizes(f, info)
	}
	return err
}

// notLess returns a system time, at least the one returned before. The kernel
// keeps its estimate from decreasing, but it remembers only values that it showed in
// files.
func (q query) notLess(ticks int64) time.Duration {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	q.k.system = max(q.k.system, ticks)
	return ofTicks(q.k.system)
}
