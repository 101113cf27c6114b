package engine

import (
	"errors"
	"io"
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
)

// attach adds a process with all its threads to a tool's scope. The process's node is added with it (OMIS
// 8.1.2: attaching to a process may include attaching to its node).
func (e *Engine) attach(t *Tool, at place) (*process, error) {
	if err := e.spareItself(at.node, at.id.PID); err != nil {
		return nil, err
	}
	e.admin.Lock()
	defer e.admin.Unlock()
	e.sweep()
	p := e.reg.process(at)
	if t.sees(p) {
		return p, nil
	}
	if err := e.prepare(p); err != nil {
		if p.tools == 0 {
			e.reg.end(p)
		}
		return nil, err
	}
	t.mu.Lock()
	gone := t.finalized
	if !gone {
		t.enterNode(at.node)
		t.procs = append(t.procs, p)
		p.tools++
	}
	t.mu.Unlock()
	p.takeOverReleased(t)
	if gone {
		if p.tools == 0 {
			e.unplantAll(p)
		}
		return nil, t.gone()
	}
	e.follow(t, p)
	return p, nil
}

// spareItself refuses to observe the monitor, which would stop when the process is stopped.
func (e *Engine) spareItself(n *machine, pid int) error {
	if n != e.home || pid != e.pid {
		return nil
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: it is the monitor itself, which would stop with it", pid)
}

// sweep forgets processes that have ended while no tool was attached to them. Until then they keep their
// tokens, since a tool may attach again.
func (e *Engine) sweep() {
	for _, p := range e.reg.unattached() {
		at := p.at()
		if id, err := at.node.Identify(at.id.PID); err == nil && id != at.id || isUnknown(err) {
			e.reg.end(p)
		}
	}
}

// prepare prepares a process that no tool was attached to: it watches for the end of the process, and gives
// tokens to its threads in the order of their numbers.
func (e *Engine) prepare(p *process) error {
	if p.tools > 0 {
		return nil
	}
	if _, err := e.pointAt(p, node.Watch{Event: node.EventProcTerminated}, nil); err != nil {
		return err
	}
	at := p.at()
	tids, err := at.node.Threads(at.id)
	if err != nil {
		e.unplantAll(p)
		return err
	}
	e.reg.refresh(p, tids)
	e.placing.Meet(&p.programs)
	return nil
}

// detach removes a process from a tool's scope. Requests stay defined; their events are not detected any
// more (OMIS 8.1.2).
func (e *Engine) detach(t *Tool, p *process) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.detachLocked(t, p)
}

func (e *Engine) detachLocked(t *Tool, p *process) {
	if !t.drop(p) {
		return
	}
	e.leave(t, p)
	e.placing.UnkeepIn(owner{t}, &p.programs)
	e.giveBack(t, p)
	p.halts.giveUp(t)
	if p.tools--; p.tools == 0 {
		e.unplantAll(p)
		e.letRun(t, p)
	}
}

// letRun continues what the monitor has stopped of a process that no tool is attached to any more, because
// no tool could continue it.
func (e *Engine) letRun(t *Tool, p *process) {
	if !p.halts.forget() {
		return
	}
	at := p.at()
	if err := at.node.Continue(at.id, nil); err != nil && !isUnknown(err) {
		t.complain(err, p.token)
	}
}

// drop removes a process from the table of the scope.
func (t *Tool) drop(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.procs, p)
	if i < 0 {
		return false
	}
	t.procs = slices.Delete(t.procs, i, i+1)
	t.unhide(p)
	return true
}

func (e *Engine) unplantAll(p *process) {
	for _, pt := range p.points {
		e.unplant(pt)
	}
}

// detachNode removes a node and all its processes from a tool's scope.
func (e *Engine) detachNode(t *Tool, n *machine) {
	e.admin.Lock()
	defer e.admin.Unlock()
	for _, p := range t.processes() {
		if p.node() == n {
			e.detachLocked(t, p)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = slices.DeleteFunc(t.nodes, func(other *machine) bool { return other == n })
}

// processEnded makes the tokens of a process unknown to all tools.
func (e *Engine) processEnded(p *process) {
	e.admin.Lock()
	defer e.admin.Unlock()
	for _, t := range e.allTools() {
		if !t.drop(p) {
			continue
		}
		p.tools--
		t.takeSuspended(p)
		e.placing.Unsubscribe(&p.programs, runs(t.requests())...)
	}
	e.placing.NameRows(&p.programs)
	e.unplantAll(p)
	e.reg.end(p)
}

// requests returns the tool's conditional requests.
func (t *Tool) requests() []*csr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.csrs)
}

// processes returns the processes in the tool's scope, in the order of their numbers.
func (t *Tool) processes() []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.procs)
	sortObjects(list)
	return list
}

func (e *Engine) allTools() []*Tool {
	e.toolsMu.Lock()
	defer e.toolsMu.Unlock()
	return slices.Collect(maps.Values(e.tools))
}

// release gives back everything that a tool has. Objects of extensions that are open are closed.
func (e *Engine) release(t *Tool) (err error) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.remove(t.requests()...)
	for _, p := range t.processes() {
		e.detachLocked(t, p)
	}
	for _, cell := range t.cells() {
		e.placing.ForgetCell(cell)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = nil
	for _, v := range t.events {
		e.reg.remove(v.token)
	}
	for _, list := range t.items {
		for _, it := range list {
			e.reg.remove(it.token)
			if open, ok := it.value.(io.Closer); ok {
				err = errors.Join(err, open.Close())
			}
		}
	}
	t.events, t.items = nil, nil
	e.reg.generation.Add(1)
	return err
}
