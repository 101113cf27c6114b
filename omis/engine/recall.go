package engine

import (
	"strconv"
	"strings"
	"time"

	"mirador/omis"
	"mirador/omis/engine/placing"
)

// A token is never used twice (OMIS 7.2.2), and an object keeps its token for life. So
// the journal of a killed monitor tells the next one which tokens it gave.

// recalled are the numbers of tokens that former monitors gave to objects which are not known yet;
// registry.mu guards them.
type recalled struct {
	procs   map[place]int
	threads map[threadPlace]int
}

type threadPlace struct {
	place
	tid int
}

// Journal records what the next monitor must know if this one is killed. The engine calls it while its
// tables are locked, so it must not call the engine.
type Journal interface {
	placing.Journal
	// Named records the token that a thread of this machine got.
	Named(token omis.Token, id omis.ProcID, tid int)
	// Ended erases the token of a thread that has ended.
	Ended(token omis.Token)
}

// SetJournal sets the engine's journal. It must be called before any tool attaches to a process.
func (e *Engine) SetJournal(j Journal) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	e.reg.journal, e.reg.home = j, e.home
	e.placing.SetJournal(j)
}

// RecallLoss records when the values that a former monitor held in memory under a key were lost. Tool.Keep
// returns it.
func (e *Engine) RecallLoss(key string, at time.Time) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.placing.RecallLoss(key, at)
}

// RecallProcess gives a process of this machine the token that it had with a former monitor. RecallThread
// does so for a thread. They must be called before the process or thread gets a token.
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

// spend records that a token was given by a former monitor. The caller holds mu.
func (r *registry) spend(c omis.Class, token omis.Token) (num int, ok bool) {
	digits, ok := strings.CutPrefix(string(token), string(c)+"_")
	num, err := strconv.Atoi(digits)
	if !ok || err != nil || num <= 0 {
		return 0, false
	}
	r.last[c] = max(r.last[c], num)
	return num, true
}

// procIdent and threadIdent are newIdent for objects that a former monitor may have known. The caller holds
// mu.
func (r *registry) procIdent(at place) ident {
	if num, ok := r.recalled.procs[at]; ok {
		return ident{token: tokenOf(omis.ClassProcess, num), num: num}
	}
	return r.newIdent(omis.ClassProcess)
}

func (r *registry) threadIdent(at place, tid int) ident {
	key := threadPlace{at, tid}
	if num, ok := r.recalled.threads[key]; ok {
		delete(r.recalled.threads, key) // another thread may get its number later
		return ident{token: tokenOf(omis.ClassThread, num), num: num}
	}
	i := r.newIdent(omis.ClassThread)
	if r.journal != nil && at.node == r.home {
		r.journal.Named(i.token, at.id, tid)
	}
	return i
}

// endedProcess returns an object for a process that has ended, which its rows need.
func (r *registry) endedProcess(at place) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.endedBefore[at]
	if p == nil {
		p = &process{ident: r.procIdent(at), ended: true, former: make(map[int]omis.Token)}
		p.where.Store(&at)
		p.programs = placing.NewProcess(p.token, r.host(p))
		r.endedBefore[at] = p
	}
	return p
}
