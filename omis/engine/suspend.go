package engine

import (
	"slices"

	"mirador/omis"
)

// thread_suspend and thread_resume (OMIS 8.1.3). The node counts; the tool's share
// is kept, so that a tool that leaves leaves nobody suspended.

func threadSuspend(x *execution, c *call, objs []object) omis.ServiceResult {
	return x.eachCrew(objs, func(g *crew, tids []int) error {
		s, err := capability[omis.Suspender](g.proc.node(), c.service)
		if err != nil {
			return err
		}
		if err := x.suspend(s, g); err != nil {
			return err
		}
		if tids == nil {
			return x.suspendLateComers(s, g)
		}
		return nil
	})
}

func (x *execution) suspend(s omis.Suspender, g *crew) error {
	at := g.proc.at()
	if err := s.Suspend(at.id, g.tids()); err != nil {
		return err
	}
	if x.tool.owes(g) {
		return nil
	}
	if err := s.Resume(at.id, g.tids()); err != nil {
		return fatal(unknownToken(g.proc.token), "its threads are suspended: %v", err)
	}
	return unknownToken(g.proc.token)
}

// owes notes that the tool has to resume threads. A tool that left the process
// meanwhile cannot.
func (t *Tool) owes(g *crew) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.procs, g.proc) {
		return false
	}
	for _, th := range g.threads {
		t.suspended[th]++
	}
	return true
}

// suspendLateComers suspends the threads that were created while the others were
// being suspended, until there are no more. That ends: who is suspended creates
// none.
func (x *execution) suspendLateComers(s omis.Suspender, g *crew) error {
	known := make(map[object]bool, len(g.threads))
	for _, t := range g.threads {
		known[t] = true
	}
	for {
		at := g.proc.at()
		tids, err := at.node.Threads(at.id)
		if err != nil {
			return err
		}
		late := &crew{proc: g.proc}
		for _, o := range x.e.reg.refresh(g.proc, tids) {
			if !known[o] {
				known[o] = true
				late.threads = append(late.threads, o.(*thread))
			}
		}
		if len(late.threads) == 0 {
			return nil
		}
		if err := x.suspend(s, late); err != nil && !isUnknown(err) {
			return fatal(err, "other threads of %s are suspended", g.proc.token)
		}
	}
}

// threadResume ends no suspension of the engine's own (see stillness).
func threadResume(x *execution, c *call, objs []object) omis.ServiceResult {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	return x.eachCrew(objs, func(g *crew, _ []int) error {
		s, err := capability[omis.Suspender](g.proc.node(), c.service)
		if err != nil {
			return err
		}
		if err := s.Resume(g.proc.at().id, g.tids()); err != nil {
			return err
		}
		x.tool.mu.Lock()
		defer x.tool.mu.Unlock()
		for _, t := range g.threads {
			if x.tool.suspended[t]--; x.tool.suspended[t] <= 0 {
				delete(x.tool.suspended, t)
			}
		}
		return nil
	})
}

// giveBack resumes what a tool has suspended of a process it leaves.
func (e *Engine) giveBack(t *Tool, p *process) {
	at := p.at()
	s, ok := at.node.Node.(omis.Suspender)
	for th, n := range t.takeSuspended(p) {
		for ; ok && n > 0; n-- {
			if err := s.Resume(at.id, []int{th.tid}); err != nil && !isUnknown(err) {
				t.complain(err, th.token)
			}
		}
	}
}

// takeSuspended forgets what the tool has to resume of a process.
func (t *Tool) takeSuspended(p *process) map[*thread]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken map[*thread]int
	for th, n := range t.suspended {
		if th.proc != p {
			continue
		}
		if taken == nil {
			taken = make(map[*thread]int)
		}
		taken[th] = n
		delete(t.suspended, th)
	}
	return taken
}
