package probes

import (
	"slices"
	"sync"

	"mirador/mir/api"
	"mirador/mir/translate"
	"mirador/omis"
)

// Process is a process of an application. The gateway and the journal write it as JSON.
type Process = api.Process

// processes is the table of an application's processes, including the terminated ones. Its
// methods may be called from any goroutine and do not block.
type processes struct {
	mu     sync.RWMutex
	all    []Process     // in the order of their tokens
	ending chan struct{} // closed when the next process has terminated; nil before nextEnd
}

// list returns all processes.
func (t *processes) list() []Process {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.all)
}

// find returns the process with a token.
func (t *processes) find(token omis.Token) (Process, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i := slices.IndexFunc(t.all, func(p Process) bool { return p.Token == token })
	if i < 0 {
		return Process{}, false
	}
	return t.all[i], true
}

func (t *processes) add(p Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(q Process) bool { return translate.Before(p.Token, q.Token) })
	if i < 0 {
		i = len(t.all)
	}
	t.all = slices.Insert(t.all, i, p)
}

func (t *processes) remove(token omis.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(p Process) bool { return p.Token == token })
}

// markGone records that a process has terminated.
func (t *processes) markGone(token omis.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.all {
		if t.all[i].Token == token {
			t.all[i].Gone, t.all[i].Paused = true, ""
		}
	}
	if t.ending != nil {
		close(t.ending)
		t.ending = nil
	}
}

// pause records where a process is paused, "" if it is not any more.
func (t *processes) pause(token omis.Token, where string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.all {
		if t.all[i].Token == token && !t.all[i].Gone {
			t.all[i].Paused = where
		}
	}
}

// paused returns the tokens of the paused processes.
func (t *processes) paused() []omis.Token {
	return t.tokens(func(p *Process) bool { return p.Paused != "" })
}

// nextEnd returns a channel that is closed when the next process has terminated.
func (t *processes) nextEnd() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending == nil {
		t.ending = make(chan struct{})
	}
	return t.ending
}

// gone returns the tokens of the terminated processes.
func (t *processes) gone() []omis.Token { return t.tokens(func(p *Process) bool { return p.Gone }) }

// living returns the tokens of the processes that are not known to have terminated.
func (t *processes) living() []omis.Token { return t.tokens(func(p *Process) bool { return !p.Gone }) }

func (t *processes) tokens(of func(*Process) bool) (tokens []omis.Token) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range t.all {
		if p := &t.all[i]; of(p) {
			tokens = append(tokens, p.Token)
		}
	}
	return tokens
}

// ended returns the identities of the terminated processes.
func (t *processes) ended() []omis.ProcID {
	var ids []omis.ProcID
	for _, p := range t.list() {
		if p.Gone {
			ids = append(ids, omis.ProcID{PID: p.PID, Start: p.Start})
		}
	}
	return ids
}
