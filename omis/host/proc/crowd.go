//go:build linux

package proc

import (
	"sync"
	"sync/atomic"
	"time"

	"mirador/omis"
	"mirador/omis/host/tasks"
	"mirador/omis/node"
)

// crowd reads all threads of a process, or all processes, at once by an eBPF program. A
// goroutine loads the program after the first question about enough threads or processes;
// until then, and if the program cannot be loaded, callers read files.
type crowd struct {
	once    sync.Once
	loading sync.WaitGroup
	loaded  atomic.Pointer[tasks.Reader]
}

func (c *crowd) reader() *tasks.Reader {
	c.once.Do(func() {
		c.loading.Go(func() {
			if r, err := tasks.Open(); err == nil {
				c.loaded.Store(r)
			}
		})
	})
	return c.loaded.Load()
}

func (c *crowd) close() {
	c.once.Do(func() {})
	c.loading.Wait()
	if r := c.loaded.Swap(nil); r != nil {
		r.Close()
	}
}

const (
	// crowdFields are the fields that crowd can answer, and those that the engine fills in
	// itself.
	crowdFields = threadStatFields | node.ThreadTotalTime |
		node.ThreadProcess | node.ThreadGlobalID | node.ThreadNode | node.ThreadLocalID | node.ThreadMessageQueue
	// fewest is the least number of threads for which the program is loaded and run. Starting
	// to read one process costs as much as the files of two threads.
	fewest = 16
	// perThread is the number of threads that the program reads in the time of one thread's
	// files. So the program may read this many threads for each one asked for.
	perThread = 6
)

// instance identifies a thread of a process, but not a later one with the same number.
type instance struct {
	tid   int
	start uint64
}

// ThreadInfos returns ThreadInfo by thread number. It leaves out threads that it cannot
// read, or not faster than their files; call ThreadInfo for those.
func (r *Reader) ThreadInfos(p omis.ProcID, tids []int, f node.ThreadFields) map[int]node.ThreadInfo {
	if f&^crowdFields != 0 || len(tids) < fewest {
		return nil
	}
	all := r.crowd.reader()
	if all == nil {
		return nil
	}
	q, err := r.ask(p)
	if err != nil {
		return nil
	}
	infos := make(map[int]node.ThreadInfo, len(tids))
	systems := make(map[instance]uint64, len(tids))
	err = all.Read(p.PID, perThread*len(tids), func(t *tasks.Task) {
		infos[t.TID] = threadInfo(t, f)
		systems[instance{t.TID, t.Start}] = t.System()
	})
	if err == nil && f&node.ThreadSystemTime != 0 {
		q.neverLess(infos, systems)
	}
	if err := q.end(err); err != nil {
		return nil
	}
	return infos
}

// threadInfo converts what was read. It fills in the name only if f asks for it, because
// that allocates memory.
func threadInfo(t *tasks.Task, f node.ThreadFields) node.ThreadInfo {
	info := node.ThreadInfo{State: schedulingState(t.State), Priority: t.Nice, TotalTime: time.Duration(t.Ran)}
	if f&node.ThreadName != 0 {
		info.Name = t.CommandName()
	}
	return info
}

// neverLess fills in the system times. They are estimates, which the kernel keeps from
// decreasing; but the kernel remembers only values that it showed in files, so neverLess
// remembers the others.
func (q query) neverLess(infos map[int]node.ThreadInfo, systems map[instance]uint64) {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	for i, system := range systems {
		system = max(system, q.k.systems[i])
		systems[i] = system
		info := infos[i.tid]
		info.SystemTime = ofTicks(int64(system / tick))
		infos[i.tid] = info
	}
	q.k.systems = systems
}
