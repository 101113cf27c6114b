//go:build linux

package proc

import (
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/host/tasks"
)

// crowd reads all threads of a process at once, or all processes, as soon as it can.
// What it takes for that is loaded when somebody first asks about so many that it pays,
// and on a goroutine: nobody waits for it, files are read meanwhile. Where it
// cannot be loaded, files it is for good.
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
	// crowdFields are what reading threads at once can tell; of the others, the
	// engine knows the first four.
	crowdFields = threadStatFields | omis.ThreadTotalTime |
		omis.ThreadProcess | omis.ThreadGlobalID | omis.ThreadNode | omis.ThreadLocalID | omis.ThreadMessageQueue
	// fewest are so many threads that it pays to load a program. To begin with a
	// process costs as much as the files of two.
	fewest = 16
	// dearer is how many threads are read at once in the time that the files of one
	// take: so many others may be among them.
	dearer = 6
)

// instance is one thread of a process, and none that has its number later.
type instance struct {
	tid   int
	start uint64
}

// ThreadInfos is ThreadInfo of many threads, by their numbers. What it cannot
// tell, or not sooner than their files, is missing: ThreadInfo tells it.
func (r *Reader) ThreadInfos(p omis.ProcID, tids []int, f omis.ThreadFields) map[int]omis.ThreadInfo {
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
	infos := make(map[int]omis.ThreadInfo, len(tids))
	systems := make(map[instance]uint64, len(tids))
	err = all.Read(p.PID, dearer*len(tids), func(t *tasks.Task) {
		infos[t.TID] = threadInfo(t, f)
		systems[instance{t.TID, t.Start}] = t.System()
	})
	if err == nil && f&omis.ThreadSystemTime != 0 {
		q.neverLess(infos, systems)
	}
	if err := q.end(err); err != nil {
		return nil
	}
	return infos
}

// threadInfo has all that was read but the name, which may not be wanted.
func threadInfo(t *tasks.Task, f omis.ThreadFields) omis.ThreadInfo {
	info := omis.ThreadInfo{State: schedulingState(t.State), Priority: t.Nice, TotalTime: float64(t.Ran) / 1e9}
	if f&omis.ThreadName != 0 {
		info.Name = t.CommandName()
	}
	return info
}

// neverLess enters the system times. They are estimates of the kernel, which
// makes sure that none is less than one before; but it notes those alone that it
// has shown in files.
func (q query) neverLess(infos map[int]omis.ThreadInfo, systems map[instance]uint64) {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	for i, system := range systems {
		system = max(system, q.k.systems[i])
		systems[i] = system
		info := infos[i.tid]
		info.SystemTime = float64(system/(1e9/userHz)) / userHz
		infos[i.tid] = info
	}
	q.k.systems = systems
}
