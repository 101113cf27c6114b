package engine

import (
	"maps"
	"time"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A process may begin and end thousands of threads a minute. The engine does not learn when the last row of
// a thread is gone, and, unless a request waits for it, when a thread ends. So from time to time it
// examines a process with many remembered threads, and forgets the threads that neither exist nor have rows.
// Their tokens are not used again.

// leastPruned is the least number of remembered threads at which prune runs.
const leastPruned = 1 << 12

// memories is what is remembered of the threads of a process, besides their rows.
type memories struct {
	threads map[int]*thread
	rows    map[rowKey]omis.Token
	former  map[int]omis.Token
}

// grownLocked starts prune if more threads of a process are remembered than allowed.
func (r *registry) grownLocked(p *process) {
	if p.pruning || len(p.threads)+len(p.rowTokens)+len(p.former) < max(p.pruneAt, leastPruned) {
		return
	}
	p.pruning = true
	time.AfterFunc(0, func() { r.prune(p) }) // the caller holds locks
}

// prune forgets threads that have ended. What was measured of them stays, but many rows in the monitor's
// memory are added up.
func (e *Engine) prune(p *process) {
	e.admin.Lock()
	defer e.admin.Unlock()
	before := e.reg.memories(p)
	alive, rows, err := e.inUse(p)
	if err != nil {
		e.log.Warn("cannot forget threads that have ended", "process", p.token, "error", err)
	} else {
		e.reg.forget(p, before, alive, rows)
		e.foldRows(p)
	}
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	p.pruning, p.pruneAt = false, 2*(len(alive)+len(rows))
}

func (r *registry) memories(p *process) memories {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return memories{maps.Clone(p.threads), maps.Clone(p.rowTokens), maps.Clone(p.former)}
}

// inUse returns the threads that exist, and the threads that have rows in stores, to which it gives tokens.
// The caller holds Engine.admin.
func (e *Engine) inUse(p *process) (alive map[int]bool, rows map[rowKey]bool, err error) {
	alive, rows = make(map[int]bool), make(map[rowKey]bool)
	at := p.at()
	for range 2 { // a list that is read while threads end may be incomplete
		tids, err := at.node.Threads(at.id)
		if err != nil && !isUnknown(err) {
			return nil, nil, err
		}
		for _, tid := range tids {
			alive[tid] = true
		}
	}
	for _, s := range p.programs.Stores() {
		list, err := s.Rows()
		if err != nil {
			return nil, nil, err
		}
		for i := range list {
			e.reg.threadOfRow(p, &list[i])
			rows[rowKey{list[i].TID, list[i].Started}] = true
		}
	}
	return alive, rows, nil
}

// forget forgets what was remembered before and is not in use.
func (r *registry) forget(p *process, before memories, alive map[int]bool, rows map[rowKey]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tid, t := range before.threads {
		if !alive[tid] && p.threads[tid] == t {
			r.dropThreadLocked(t)
		}
	}
	for key, token := range before.rows {
		if t := p.threads[key.tid]; rows[key] || key == (rowKey{}) || t != nil && t.token == token {
			continue // the sum of ended threads, or a thread that exists and whose rows a reset has removed
		}
		delete(p.rowTokens, key)
		delete(p.hasRow, token)
	}
	for tid, token := range before.former {
		if p.former[tid] == token {
			delete(p.former, tid)
		}
	}
}

// foldRows tells objects of tools to add up their own rows of ended threads. The caller holds Engine.admin.
func (e *Engine) foldRows(p *process) {
	ended := service.Ended{
		Proc: p.token, Nobody: e.reg.threadOfRow(p, &program.Row{}),
		Lives: func(thread omis.Token) bool { return e.reg.lookup(thread) != nil },
	}
	for _, t := range e.allTools() {
		for _, f := range valuesOf[service.Folder](t) {
			f.Fold(ended)
		}
	}
}
