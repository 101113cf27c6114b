package engine

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// halts records what the monitor has stopped of a process by thread_stop. From this the engine knows when a
// process as a whole has been stopped or continued (OMIS 8.1.2).
type halts struct {
	mu      sync.Mutex
	all     bool // including threads to come
	tids    map[int]bool
	stopped bool           // all threads are stopped
	by      map[*Tool]bool // tools that stopped threads since all were last continued
	ever    bool           // all threads were stopped since all were last continued
}

// created records that a process was created in a stopped state.
func (h *halts) created() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all, h.stopped, h.ever = true, true, true
}

// stop records that threads were stopped; nil means all. present are the threads of the process. stop
// reports whether this stopped the process as a whole.
func (h *halts) stop(tids, present []int) (whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tids == nil {
		h.all = true
	}
	if h.tids == nil {
		h.tids = make(map[int]bool)
	}
	for _, tid := range tids {
		h.tids[tid] = true
	}
	was := h.stopped
	h.stopped = h.all || !slices.ContainsFunc(present, func(tid int) bool { return !h.tids[tid] })
	h.ever = h.ever || h.stopped
	return h.stopped && !was
}

// goOn records that threads were continued. It reports whether now all threads are continued of a process
// that was stopped as a whole.
func (h *halts) goOn(tids, present []int) (whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all && tids != nil {
		h.tids = make(map[int]bool, len(present))
		for _, tid := range present {
			h.tids[tid] = true
		}
	}
	for _, tid := range tids {
		delete(h.tids, tid)
	}
	h.all, h.stopped = false, false
	if tids != nil && slices.ContainsFunc(present, func(tid int) bool { return h.tids[tid] }) {
		return false
	}
	was := h.ever
	h.tids, h.ever, h.by = nil, false, nil
	return was
}

// forget records that nothing is stopped, and reports whether anything was.
func (h *halts) forget() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.all || len(h.tids) > 0
	h.all, h.stopped, h.ever, h.tids, h.by = false, false, false, nil, nil
	return was
}

// stops records that a tool is about to stop threads.
func (h *halts) stops(t *Tool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = make(map[*Tool]bool)
	}
	h.by[t] = true
}

// giveUp forgets that a tool stopped threads, and reports whether threads are stopped that no other tool
// stopped.
func (h *halts) giveUp(t *Tool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.by[t]
	delete(h.by, t)
	return was && len(h.by) == 0 && (h.all || len(h.tids) > 0)
}

// isStopped reports whether the process as a whole is stopped.
func (h *halts) isStopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped
}

// present returns the threads of a process, if only some of them are meant.
func present(at *place, tids []int) []int {
	if tids == nil {
		return nil
	}
	list, err := at.node.Threads(at.id)
	if err != nil {
		return nil
	}
	return list
}

func (x *execution) stopCrew(g *crew, tids []int) error {
	at := g.proc.at()
	g.proc.halts.stops(x.tool)
	if err := at.node.Stop(at.id, tids); err != nil {
		return err
	}
	if g.proc.halts.stop(tids, present(at, tids)) {
		x.later(func() { x.announce(g.proc, eventProcStopped) })
	}
	return nil
}

// continueCrew continues threads. If a list waits for the process to be continued, the threads are
// suspended until the list is done.
func (x *execution) continueCrew(g *crew, tids []int) error {
	at := g.proc.at()
	release, err := x.holdFor(eventProcContinued, at, g, tids)
	if err != nil {
		return err
	}
	if err := at.node.Continue(at.id, tids); err != nil {
		release()
		return err
	}
	if !g.proc.halts.goOn(tids, present(at, tids)) {
		release()
		return nil
	}
	x.later(func() {
		defer release()
		x.announce(g.proc, eventProcContinued)
	})
	return nil
}

func (x *execution) holdFor(kind node.EventKind, at *place, g *crew, tids []int) (release func(), err error) {
	s, ok := declared(at.node.Can.Suspender)
	if !ok || x.e.listeners(g.proc, kind) == nil {
		return func() {}, nil
	}
	if tids == nil {
		tids = g.tids()
	}
	if err := s.Suspend(at.id, tids); err != nil {
		return nil, err
	}
	return func() {
		if err := resumeThreads(s, at, tids); err != nil {
			x.tool.complain(err, g.proc.token)
		}
	}, nil
}

// listeners returns the requests that wait for an event which the engine causes, in the order of their
// definition.
func (e *Engine) listeners(p *process, kind node.EventKind) []*csr {
	e.admin.Lock()
	pt := p.points[pointKey{kind: kind}]
	e.admin.Unlock()
	if pt == nil {
		return nil
	}
	pt.mu.Lock()
	defer pt.mu.Unlock()
	return mapped(pt.subs, func(s *subscription) *csr { return s.csr })
}

// letHear announces an event in the middle of a service.
func (x *execution) letHear(p *process, kind node.EventKind, params ...omis.Value) {
	x.unlockForNested()
	defer x.lockAfterNested()
	x.announce(p, kind, params...)
}

// announce executes the lists that wait for what the engine did to a process. The list that did it waits
// for them.
func (x *execution) announce(p *process, kind node.EventKind, params ...omis.Value) {
	list := x.e.listeners(p, kind)
	if len(list) == 0 {
		return
	}
	if x.nested >= maxNesting {
		x.tool.complain(omis.Errorf(omis.ParameterError, "an event was lost: lists are nested deeper than %d", maxNesting), p.token)
		return
	}
	n := p.node()
	occ := service.Occurrence{
		Node: n.token, Proc: p.token, Thread: omis.Undefined,
		Time: n.clock(), Now: n.clock, Params: params,
	}
	for _, c := range list {
		c.trigger(&occ, p.token, x)
	}
}
