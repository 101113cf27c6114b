package engine

import (
	"errors"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
)

// thread_suspend and thread_resume (OMIS 8.1.3). The node counts all suspensions. The engine counts the
// suspensions by each tool, and undoes them when the tool leaves.

func threadSuspend(x *execution, c *call, objs []object) (failed omis.ServiceResult) {
	for _, g := range crews(objs) {
		failed = append(failed, x.suspendCrew(c, g)...)
	}
	return failed
}

// suspendCrew suspends threads of a process. If they are all of its threads, it also suspends those that
// are created meanwhile.
func (x *execution) suspendCrew(c *call, g *crew) omis.ServiceResult {
	s, err := capability(g.proc.node(), g.proc.node().Can.Suspender, c.service)
	if err != nil {
		return omis.ServiceResult{failure(err, tokens(g.threads)...)}
	}
	suspend := func(g *crew, _ []int) error { return x.suspend(s, g) }
	whole := x.conv.whole(g)
	failed := x.onCrew(g, suspend)
	if !whole || slices.ContainsFunc(failed, func(r omis.ObjectResult) bool { return r.Status != omis.UnknownObject }) {
		return failed
	}
	return append(failed, x.suspendLateComers(g, suspend)...)
}

func (x *execution) suspend(s node.Suspender, g *crew) error {
	at := g.proc.at()
	if err := s.Suspend(at.id, g.tids()); err != nil {
		return err
	}
	if x.tool.owes(g) {
		return nil
	}
	if err := resumeThreads(s, at, g.tids()); err != nil {
		return fatal(unknownToken(g.proc.token), "its threads are suspended: %v", err)
	}
	return unknownToken(g.proc.token)
}

// resumeThreads resumes threads. If one of them has ended, the node resumes none at once, so each is
// resumed by itself.
func resumeThreads(s node.Suspender, at *place, tids []int) error {
	err := s.Resume(at.id, tids)
	if len(tids) < 2 || !isUnknown(err) {
		return ifKnown(err)
	}
	var errs []error
	for _, tid := range tids {
		errs = append(errs, ifKnown(s.Resume(at.id, []int{tid})))
	}
	return errors.Join(errs...)
}

// ifKnown drops the error that an object has ended.
func ifKnown(err error) error {
	if isUnknown(err) {
		return nil
	}
	return err
}

// owes records that the tool has to resume threads. It returns false if the tool has left the process
// meanwhile.
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

// suspendLateComers suspends threads that were created while the others were being suspended, until there
// are no more. This ends, because suspended threads create none.
func (x *execution) suspendLateComers(g *crew, suspend func(*crew, []int) error) omis.ServiceResult {
	known := make(map[object]bool, len(g.threads))
	for _, t := range g.threads {
		known[t] = true
	}
	for {
		at := g.proc.at()
		tids, err := at.node.Threads(at.id)
		switch {
		case isUnknown(err):
			return nil // the process has ended
		case err != nil:
			return omis.ServiceResult{failure(err, g.proc.token)}
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
		for _, r := range x.onCrew(late, suspend) {
			if r.Status != omis.UnknownObject {
				err := fatal(&omis.Error{Status: r.Status, Msg: r.Msg}, "other threads of %s are suspended", g.proc.token)
				return omis.ServiceResult{failure(err, g.proc.token)}
			}
		}
	}
}

// threadResume ends no suspension of the engine's own (see stillness). If all threads of
// a process are named, it also resumes those that the list's conversion of the process
// does not contain because they were created after it (OMIS 7.2.2, rule 3): the tool
// suspended them with the process (see suspendLateComers).
func threadResume(x *execution, c *call, objs []object) (failed omis.ServiceResult) {
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	for _, g := range crews(objs) {
		s, err := capability(g.proc.node(), g.proc.node().Can.Suspender, c.service)
		if err != nil {
			failed = append(failed, failure(err, tokens(g.threads)...))
			continue
		}
		resume := func(g *crew, _ []int) error { return x.resume(s, g) }
		var late *crew
		if x.conv.whole(g) {
			late = x.tool.owedBeyond(g)
		}
		failed = append(failed, x.onCrew(g, resume)...)
		if late == nil {
			continue
		}
		for _, r := range x.onCrew(late, resume) {
			if r.Status != omis.UnknownObject {
				failed = append(failed, r)
			}
		}
	}
	return failed
}

func (x *execution) resume(s node.Suspender, g *crew) error {
	err := s.Resume(g.proc.at().id, g.tids())
	if err != nil && !(isUnknown(err) && len(g.threads) == 1) {
		return err
	}
	x.tool.mu.Lock()
	defer x.tool.mu.Unlock()
	for _, t := range g.threads {
		if x.tool.suspended[t]--; err != nil || x.tool.suspended[t] <= 0 {
			delete(x.tool.suspended, t)
		}
	}
	return err
}

// owedBeyond returns the threads of a process, except those of a crew, that the tool has to resume, or nil.
func (t *Tool) owedBeyond(g *crew) *crew {
	t.mu.Lock()
	defer t.mu.Unlock()
	named := make(map[*thread]bool, len(g.threads))
	for _, th := range g.threads {
		named[th] = true
	}
	var list []*thread
	for th := range t.suspended {
		if th.proc == g.proc && !named[th] {
			list = append(list, th)
		}
	}
	if list == nil {
		return nil
	}
	sortObjects(list)
	return &crew{proc: g.proc, threads: list}
}

// giveBack resumes what a tool has suspended of a process, and reports whether there was anything.
func (e *Engine) giveBack(t *Tool, p *process) bool {
	at := p.at()
	s, ok := declared(at.node.Can.Suspender)
	taken := t.takeSuspended(p)
	for th, n := range taken {
		for ; ok && n > 0; n-- {
			if err := s.Resume(at.id, []int{th.tid}); err != nil && !isUnknown(err) {
				t.complain(err, th.token)
			}
		}
	}
	return len(taken) > 0
}

// takeSuspended removes and returns what the tool has to resume of a process.
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
