//go:build linux

package proc

import (
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/tasks"
)

const (
	// crowdStat are what reading processes at once can tell.
	crowdStat = omis.ProcSchedulingState | omis.ProcTotalTime | omis.ProcPriority | omis.ProcSystemTime
	// crowdKnown are what needs no reading.
	crowdKnown = omis.ProcGlobalID | omis.ProcLocalID | omis.ProcMessageQueue | omis.ProcNode | omis.ProcIntResidentSize | omis.ProcSwaps
	// crowdSizes may be asked for, too: they are read from their file, which is a cheap one.
	crowdSizes = omis.ProcMemorySize | omis.ProcResidentSize
	// passed are how many threads of all processes are passed over in the time that the
	// files of one process take.
	passed = 16
)

// ProcInfos is Info of many processes, in the order of the list. What it cannot tell,
// or not sooner than their files, is missing: Info tells it.
func (r *Reader) ProcInfos(list []omis.ProcID, f omis.ProcFields) []*omis.ProcInfo {
	if f&crowdStat == 0 || f&^(crowdStat|crowdKnown|crowdSizes) != 0 || !pays(len(list), allThreads()) {
		return nil
	}
	return r.procInfosAtOnce(list, f)
}

// pays tells whether it pays to read all processes when some are asked about, with so
// many threads on the machine.
func pays(asked, threads int) bool { return asked >= fewest && threads <= passed*asked }

// procInfosAtOnce is ProcInfos whatever it costs.
func (r *Reader) procInfosAtOnce(list []omis.ProcID, f omis.ProcFields) []*omis.ProcInfo {
	all := r.crowd.reader()
	if all == nil {
		return nil
	}
	at := make(map[omis.ProcID]int, len(list))
	for i, p := range list {
		at[p] = i
	}
	infos, told := make([]omis.ProcInfo, len(list)), make([]*omis.ProcInfo, len(list))
	err := all.ReadProcesses(func(p *tasks.Process) {
		id := omis.ProcID{PID: p.TID, Start: p.Start / (1e9 / userHz)}
		i, wanted := at[id]
		// Of several threads the times would have to be added up, while some end and
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

// allThreads is how many threads there are on this machine.
func allThreads() int {
	var s unix.Sysinfo_t
	_ = unix.Sysinfo(&s) // it cannot fail
	return int(s.Procs)
}

// crowdInfo is what f asks for of a process that was read.
func (r *Reader) crowdInfo(id omis.ProcID, f omis.ProcFields, p *tasks.Process, info *omis.ProcInfo) error {
	*info = unread()
	info.State, info.Priority = schedulingState(p.State), p.Nice
	info.TotalTime = float64(p.Ran) / 1e9
	if f&(omis.ProcSystemTime|crowdSizes) == 0 {
		return nil
	}
	q, err := r.ask(id)
	if err != nil {
		return err
	}
	defer q.done()
	if f&omis.ProcSystemTime != 0 {
		info.SystemTime = q.notLess(int64(p.System() / (1e9 / userHz)))
	}
	if f&crowdSizes != 0 {
		err = q.sizes(f, info)
	}
	return err
}

// notLess is a system time, or the one that was told before. It is an estimate of the
// kernel, which makes sure that none is less than one before; but it notes those alone
// that it has shown in files.
func (q query) notLess(ticks int64) float64 {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	q.k.system = max(q.k.system, ticks)
	return float64(q.k.system) / userHz
}
