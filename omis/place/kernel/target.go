//go:build linux && amd64

package kernel

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
)

// target is a process that has stores or programs. memory.mu guards it, except alive.
type target struct {
	memory *memory
	proc   omis.ProcID
	gone   code.Unit          // the first word of this unit becomes 1 when the process executes another program
	users  int                // stores and programs
	sites  map[uint64]planted // our uprobes, by address

	threads sync.Mutex
	alive   map[code.Thread]bool // whether each thread was alive when a row of it was first read
}

// planted describes our uprobes at one address.
type planted struct {
	count int
	code  []byte // the original instruction
}

func newTarget(m *memory, id omis.ProcID, gone code.Unit) *target {
	return &target{memory: m, proc: id, gone: gone, sites: make(map[uint64]planted), alive: make(map[code.Thread]bool)}
}

// leave removes a user that memory.enter counted. The caller holds memory.mu.
func (t *target) leave() {
	if t.users--; t.users > 0 {
		return
	}
	m := t.memory
	if m.targets[t.proc] == t {
		delete(m.targets, t.proc)
		_ = m.running.Delete(uint32(t.proc.PID)) // enter has put it there
	}
	m.keeper.delete(persist.Targets, t.gone)
	m.slab.give(t.gone, 1)
}

// isGone reports whether the process has executed another program.
func (t *target) isGone() bool { return t.memory.slab.Word(t.gone, 0).Load() != 0 }

// addSite counts one more uprobe of ours at a site.
func (t *target) addSite(s *site) {
	t.sites[s.addr] = planted{t.sites[s.addr].count + 1, s.code}
}

// removeSite counts one uprobe less at a site.
func (t *target) removeSite(s *site) {
	if left := t.sites[s.addr].count - 1; left > 0 {
		t.sites[s.addr] = planted{left, s.code}
		return
	}
	delete(t.sites, s.addr)
}

// wasAlive reports whether a thread was alive when a row of it was first read.
func (t *target) wasAlive(th code.Thread) bool {
	t.threads.Lock()
	defer t.threads.Unlock()
	was, known := t.alive[th]
	if !known {
		was = isAlive(t.proc.PID, th)
		t.alive[th] = was
	}
	return was
}

// knewAlive is wasAlive for a thread that has ended since.
func (t *target) knewAlive(k code.Key) bool {
	t.threads.Lock()
	defer t.threads.Unlock()
	return t.alive[k.Thread()]
}

func isAlive(pid int, th code.Thread) bool {
	ticks, err := proc.ThreadStart(pid, th.TID)
	return err == nil && ticks == th.Ticks
}

// ended returns a function that reports whether a thread has ended. The function asks procfs once for
// each thread.
func (t *target) ended() func(code.Thread) bool {
	tids, _ := proc.Threads(t.proc.PID) // none if the process has ended
	known := make(map[code.Thread]bool)
	return func(th code.Thread) bool {
		has, asked := known[th]
		if !asked {
			has = !slices.Contains(tids, th.TID) || !isAlive(t.proc.PID, th)
			known[th] = has
		}
		return has
	}
}

// forgetEnded deletes ended threads from alive.
func (t *target) forgetEnded(hasEnded func(code.Thread) bool) {
	t.threads.Lock()
	defer t.threads.Unlock()
	for th := range t.alive {
		if hasEnded(th) {
			delete(t.alive, th)
		}
	}
}
