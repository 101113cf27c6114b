//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// target is a process that programs are placed in. Placer.mu guards it, but for what its
// threads are.
type target struct {
	placer *Placer
	proc   omis.ProcID
	gone   unit
	users  int                // stores and programs
	sites  map[uint64]uprobes // of ours, by address

	threads sync.Mutex
	alive   map[thread]bool // whether they were there when a row of theirs was read first
}

// uprobes are those at one address.
type uprobes struct {
	count int
	code  []byte // the instruction that stands there
}

// enter counts a user of a process. Who came before the process executed another
// program stays with what it was. The caller holds mu.
func (p *Placer) enter(id omis.ProcID) (*target, error) {
	t := p.targets[id]
	if t == nil || t.isGone() {
		gone, err := p.slab.take(1)
		if err != nil {
			return nil, err
		}
		if err := p.running.Put(uint32(id.PID), uint32(gone)); err != nil {
			p.slab.give(gone, 1)
			return nil, fmt.Errorf("there are programs in %d processes, there is no room for more: %w", len(p.targets), err)
		}
		t = &target{placer: p, proc: id, gone: gone, sites: make(map[uint64]uprobes), alive: make(map[thread]bool)}
		p.targets[id] = t
		t.note()
	}
	t.users++
	return t, nil
}

// leave is the contrary of enter. The caller holds Placer.mu.
func (t *target) leave() {
	if t.users--; t.users > 0 {
		return
	}
	if p := t.placer; p.targets[t.proc] == t {
		delete(p.targets, t.proc)
		_ = p.running.Delete(uint32(t.proc.PID)) // it was put there
	}
	t.forget()
	t.placer.slab.give(t.gone, 1)
}

// isGone tells whether the process executes another program by now.
func (t *target) isGone() bool { return t.placer.slab.word(t.gone, 0).Load() != 0 }

// stand notes that a uprobe of ours stands at a site, fall that one does not any more.
func (t *target) stand(s *site) {
	t.sites[s.addr] = uprobes{t.sites[s.addr].count + 1, s.code}
}

func (t *target) fall(s *site) {
	if left := t.sites[s.addr].count - 1; left > 0 {
		t.sites[s.addr] = uprobes{left, s.code}
		return
	}
	delete(t.sites, s.addr)
}

// thread names one thread of a process for good: procfs tells its start in hundredths
// of a second.
type thread struct {
	tid   int
	ticks uint64
}

// nsPerTick is a hundredth of a second: USER_HZ is 100 on x86.
const nsPerTick = 10_000_000

func (k key) thread() thread { return thread{int(k.TID), k.Started / nsPerTick} }

// wasAlive tells whether a thread was there when a row of it was read first.
func (t *target) wasAlive(th thread) bool {
	t.threads.Lock()
	defer t.threads.Unlock()
	was, known := t.alive[th]
	if !known {
		was = th.isAlive(t.proc.PID)
		t.alive[th] = was
	}
	return was
}

// knewAlive is wasAlive for a thread that has ended since.
func (t *target) knewAlive(k key) bool {
	t.threads.Lock()
	defer t.threads.Unlock()
	return t.alive[k.thread()]
}

func (th thread) isAlive(pid int) bool {
	ticks, err := proc.ThreadStart(pid, th.tid)
	return err == nil && ticks == th.ticks
}

// ended returns a function that tells which threads have ended by now. It looks once
// for each.
func (t *target) ended() func(thread) bool {
	tids, _ := proc.Threads(t.proc.PID) // none where the process has ended
	known := make(map[thread]bool)
	return func(th thread) bool {
		is, looked := known[th]
		if !looked {
			is = !slices.Contains(tids, th.tid) || !th.isAlive(t.proc.PID)
			known[th] = is
		}
		return is
	}
}

// forgetEnded forgets of threads that have ended whether they were there once.
func (t *target) forgetEnded(hasEnded func(thread) bool) {
	t.threads.Lock()
	defer t.threads.Unlock()
	for th := range t.alive {
		if hasEnded(th) {
			delete(t.alive, th)
		}
	}
}
