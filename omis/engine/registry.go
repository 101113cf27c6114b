package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// registry has all objects by their tokens and by their identities on nodes. A number is given once, so a
// token is never used again.
type registry struct {
	mu      sync.RWMutex
	last    map[omis.Class]int
	objects map[omis.Token]object
	procs   map[place]*process

	recalled    recalled
	journal     Journal            // nil: nothing is recorded
	home        *machine           // its threads are recorded
	endedBefore map[place]*process // processes that ended under a former monitor

	queues   map[queueKey]*queueObject
	messages map[messageKey]*messageObject

	host  func(*process) placing.ProcessHost
	prune func(*process) // forgets ended threads of a process

	// generation changes when an extension's object is made or deleted; compiled action lists look up
	// objects again then.
	generation atomic.Uint64
}

func newRegistry() *registry {
	return &registry{
		last:        make(map[omis.Class]int),
		objects:     make(map[omis.Token]object),
		procs:       make(map[place]*process),
		endedBefore: make(map[place]*process),
		recalled:    recalled{procs: make(map[place]int), threads: make(map[threadPlace]int)},
		queues:      make(map[queueKey]*queueObject), messages: make(map[messageKey]*messageObject),
	}
}

// newIdent returns the next token of a class. The caller holds mu.
func (r *registry) newIdent(c omis.Class) ident {
	r.last[c]++
	return ident{token: tokenOf(c, r.last[c]), num: r.last[c]}
}

// add makes an object with a new token.
func (r *registry) add(c omis.Class, build func(ident) object) object {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := build(r.newIdent(c))
	r.objects[o.Token()] = o
	return o
}

func (r *registry) lookup(t omis.Token) object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.objects[t]
}

func (r *registry) remove(t omis.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, t)
}

// process returns the object of a process, and makes it if necessary.
func (r *registry) process(at place) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.procs[at]; p != nil {
		return p
	}
	p := &process{ident: r.procIdent(at), queue: newQueue(maxPending), points: make(map[pointKey]*point), threads: make(map[int]*thread)}
	p.programs = placing.NewProcess(p.token, r.host(p))
	p.where.Store(&at)
	r.procs[at], r.objects[p.token] = p, p
	return p
}

// move records that a process lives somewhere else now; it keeps its token.
func (r *registry) move(p *process, to place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.procs, *p.at())
	p.where.Store(&to)
	r.procs[to] = p
}

// byPID finds a known process by its pid.
func (r *registry) byPID(n *machine, pid int) *process {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for at, p := range r.procs {
		if at.node == n && at.id.PID == pid {
			return p
		}
	}
	return nil
}

// unattached returns the processes that no tool is attached to. The caller holds Engine.admin.
func (r *registry) unattached() []*process {
	return r.which(func(p *process) bool { return p.tools == 0 })
}

// attached returns the processes that a tool is attached to. The caller holds Engine.admin.
func (r *registry) attached() []*process {
	return r.which(func(p *process) bool { return p.tools > 0 })
}

func (r *registry) which(picked func(*process) bool) []*process {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []*process
	for _, p := range r.procs {
		if picked(p) {
			list = append(list, p)
		}
	}
	return list
}

// thread returns the object of a thread, and makes it if necessary.
func (r *registry) thread(p *process, tid int) *thread { return r.threadOfLife(p, tid, 0) }

// threadOfLife returns the object of a thread, and makes it if necessary. If the registry has a thread with
// this number and another life, that thread has ended and is dropped; 0 means that the life is unknown.
// threadOfLife is called for each hit.
func (r *registry) threadOfLife(p *process, tid int, life uint64) *thread {
	r.mu.RLock()
	t := p.threads[tid]
	r.mu.RUnlock()
	if t != nil && (life == 0 || t.life.Load() == life) {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := p.threads[tid]; t != nil && life != 0 && t.life.Load() != 0 && t.life.Load() != life {
		r.dropThreadLocked(t)
	}
	t = r.threadLocked(p, tid)
	if life != 0 {
		t.life.Store(life)
	}
	return t
}

func (r *registry) threadLocked(p *process, tid int) *thread {
	if t := p.threads[tid]; t != nil {
		return t
	}
	t := &thread{ident: r.threadIdent(*p.at(), tid), proc: p, tid: tid}
	// A hit may be reported after the end of its process. Its thread gets a token for replies, which names
	// no object.
	if !p.ended {
		p.threads[tid], r.objects[t.token] = t, t
		r.grownLocked(p)
	}
	return t
}

// tids returns the thread ids of some tokens; nil for nil.
func (r *registry) tids(threads map[omis.Token]bool) []int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []int
	for token := range threads {
		if t, ok := r.objects[token].(*thread); ok {
			list = append(list, t.tid)
		}
	}
	slices.Sort(list)
	return list
}

// refresh replaces the list of a process's threads. Threads that are not in the list have ended, and their
// tokens become unknown.
func (r *registry) refresh(p *process, tids []int) []object {
	list := make([]object, len(tids))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, tid := range tids {
		list[i] = r.threadLocked(p, tid)
	}
	if len(p.threads) > len(tids) {
		r.keepThreads(p, tids)
	}
	sortObjects(list)
	return list
}

// keepThreads drops all other threads of a process.
func (r *registry) keepThreads(p *process, tids []int) {
	alive := make(map[int]bool, len(tids))
	for _, tid := range tids {
		alive[tid] = true
	}
	for tid, t := range p.threads {
		if !alive[tid] {
			r.dropThreadLocked(t)
		}
	}
}

// endThread makes the token of a thread unknown, unless another thread has its number by now.
func (r *registry) endThread(p *process, tid int, life uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := p.threads[tid]; t != nil && (life == 0 || t.life.Load() == life) {
		r.dropThreadLocked(t)
	}
}

func (r *registry) dropThreadLocked(t *thread) {
	// The tid may belong to another thread by now.
	if t.proc.threads[t.tid] == t {
		delete(t.proc.threads, t.tid)
	}
	delete(r.objects, t.token)
	if r.journal != nil && t.proc.node() == r.home {
		r.journal.Ended(t.token)
	}
	if t.proc.former != nil {
		t.proc.former[t.tid] = t.token
	}
}

// end makes the tokens of a process and its threads unknown.
func (r *registry) end(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.ended = true
	delete(r.procs, *p.at())
	delete(r.objects, p.token)
	r.dropQueuesLocked(p)
	for _, t := range p.threads {
		r.dropThreadLocked(t)
	}
}
