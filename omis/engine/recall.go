package engine

import (
	"strconv"
	"strings"
	"time"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// A token is never used twice (OMIS 7.2.2), and what has one keeps it for life: also
// where the monitor is another one by now, if it is told which tokens the former one
// has given out.

// recalled are the numbers that former monitors gave to what is not known yet;
// registry.mu guards them.
type recalled struct {
	procs   map[place]int
	threads map[threadPlace]int
}

type threadPlace struct {
	place
	tid int
}

// Journal records what the next monitor must know if this one is killed. The engine
// calls it while its tables are locked, so it must not call the engine.
type Journal interface {
	placing.Journal
	// Named records the token that a thread of this machine got.
	Named(token omis.Token, id omis.ProcID, tid int)
	// Ended erases the token of a thread that has ended.
	Ended(token omis.Token)
}

// SetJournal gives the engine its journal. It must be called before any tool attaches
// to a process.
func (e *Engine) SetJournal(j Journal) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	e.reg.journal, e.reg.home = j, e.home
	e.placing.SetJournal(j)
}

// RecallLoss tells the engine when the values that a former monitor held in memory
// under a key were lost. Tool.Keep returns it.
func (e *Engine) RecallLoss(key string, at time.Time) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.placing.RecallLoss(key, at)
}

// RecallProcess has a process of this machine get the token that a former monitor gave
// it, RecallThread a thread. It has to be said before anybody asks for them.
func (e *Engine) RecallProcess(id omis.ProcID, token omis.Token) {
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	if num, ok := e.reg.spend(omis.ClassProcess, token); ok {
		e.reg.recalled.procs[place{e.home, id}] = num
	}
}

// RecallThread: see RecallProcess.
func (e *Engine) RecallThread(id omis.ProcID, tid int, token omis.Token) {
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	if num, ok := e.reg.spend(omis.ClassThread, token); ok {
		e.reg.recalled.threads[threadPlace{place{e.home, id}, tid}] = num
	}
}

// spend notes that a token was given out. The caller holds mu.
func (r *registry) spend(c omis.Class, token omis.Token) (num int, ok bool) {
	digits, ok := strings.CutPrefix(string(token), string(c)+"_")
	num, err := strconv.Atoi(digits)
	if !ok || err != nil || num <= 0 {
		return 0, false
	}
	r.last[c] = max(r.last[c], num)
	return num, true
}

// procIdent and threadIdent are newIdent for what a former monitor may have known. The
// caller holds mu.
func (r *registry) procIdent(at place) ident {
	if num, ok := r.recalled.procs[at]; ok {
		return ident{token: tokenOf(omis.ClassProcess, num), num: num}
	}
	return r.newIdent(omis.ClassProcess)
}

func (r *registry) threadIdent(at place, tid int) ident {
	key := threadPlace{at, tid}
	if num, ok := r.recalled.threads[key]; ok {
		delete(r.recalled.threads, key) // another thread may get its number one day
		return ident{token: tokenOf(omis.ClassThread, num), num: num}
	}
	i := r.newIdent(omis.ClassThread)
	if r.journal != nil && at.node == r.home {
		r.journal.Named(i.token, at.id, tid)
	}
	return i
}

// ghost is a process that has ended, as far as its rows need one.
func (r *registry) ghost(at place) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.ghosts[at]
	if p == nil {
		p = &process{ident: r.procIdent(at), ended: true, former: make(map[int]omis.Token)}
		p.where.Store(&at)
		p.programs = placing.NewProcess(p.token, r.host(p))
		r.ghosts[at] = p
	}
	return p
}
