package engine

import (
	"iter"
	"slices"
	"time"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// This file has the engine's side of package placing, which decides where the programs of requests run.
// Unless their comments say otherwise, these methods are called with Engine.admin held.

// host is the engine as package placing sees it.
type host struct{ e *Engine }

var _ placing.Host = host{}

// Tools returns all tools.
func (h host) Tools() []placing.Tool {
	return mapped(h.e.allTools(), func(t *Tool) placing.Tool { return owner{t} })
}

// TIDs: see placing.Host.
func (h host) TIDs(threads map[omis.Token]bool) []int { return h.e.reg.tids(threads) }

// Attached returns the processes that a tool is attached to.
func (h host) Attached() []*placing.Process {
	return programs(h.e.reg.attached())
}

// programs returns processes as package placing sees them.
func programs(list []*process) []*placing.Process {
	return mapped(list, func(p *process) *placing.Process { return &p.programs })
}

// Execute enters a request at a point of its process.
func (h host) Execute(of *placing.Subscription) (held placing.Held, note string, err error) {
	c, p := csrOf(of.Request), processOf(of.Proc)
	s := &subscription{csr: c, of: of, only: of.Only, hits: make(map[string]*placing.Hits)}
	if of.Placement().Local {
		s.local = newLocalList(c)
	}
	w := c.event.watch
	if isDense(w.Event) {
		w.Threads = h.e.reg.tids(s.only)
	}
	if w.Hold = c.queriesAtEnd(p); w.Hold {
		if s.point, err = h.e.pointAt(p, w, s); err == nil {
			return s, heldAtExit, nil
		}
		note = "; when the list is executed the process has ended, because it cannot be held at its exit: " + placing.Reason(err)
		w.Hold = false
	}
	if s.point, err = h.e.pointAt(p, w, s); err != nil {
		return nil, note, err
	}
	return s, note, nil
}

// owner is a tool as package placing sees it.
type owner struct{ t *Tool }

var _ placing.Tool = owner{}

// Requests: see placing.Tool.
func (o owner) Requests() []*placing.Request {
	return runs(o.t.requests())
}

// Processes: see placing.Tool.
func (o owner) Processes() []*placing.Process {
	return programs(o.t.processes())
}

// Has: see placing.Tool.
func (o owner) Has(cell service.Cell) bool { return slices.Contains(o.t.cells(), cell) }

// csrOf returns the conditional request of a placing.Request.
func csrOf(r *placing.Request) *csr { return r.Owner.(*csr) }

// runs returns requests as package placing sees them.
func runs(list []*csr) []*placing.Request {
	return mapped(list, func(c *csr) *placing.Request { return &c.run })
}

var _ placing.Owner = (*csr)(nil)

// WantsReplies: see placing.Owner.
func (c *csr) WantsReplies() bool { return c.wantsReplies() }

// Enabled: see placing.Owner.
func (c *csr) Enabled() bool { return c.active.Load() }

// Hides: see placing.Owner.
func (c *csr) Hides(p *placing.Process) bool { return c.tool.hidesAny(processOf(p)) }

// Targets: see placing.Owner.
func (c *csr) Targets() []placing.Target {
	return mapped(c.targets(), target.placed)
}

// Remark: see placing.Owner.
func (c *csr) Remark(p *placing.Process) string {
	if c.queriesAtEnd(processOf(p)) {
		return heldAtExit
	}
	return ""
}

// Disabled: see placing.Owner.
func (c *csr) Disabled(p *placing.Process, err error) {
	c.tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{failure(err, p.Token)}))
}

// placed returns the target as package placing sees it.
func (t target) placed() placing.Target { return placing.Target{Proc: &t.proc.programs, Only: t.only} }

// hosted is a process as package placing sees it.
type hosted struct {
	e *Engine
	p *process
}

var _ placing.ProcessHost = hosted{}

// processOf returns the process of a placing.Process.
func processOf(p *placing.Process) *process { return p.Host.(hosted).p }

// At: see placing.ProcessHost.
func (h hosted) At() (*placing.Machine, omis.ProcID) {
	at := h.p.at()
	return &at.node.Machine, at.id
}

// Freeze suspends the process, and others that share its memory.
func (h hosted) Freeze() (thaw func()) { return fleetOf(h.p).freeze(h.e) }

// ThreadOf: see placing.ProcessHost. Any goroutine may call it without a lock.
func (h hosted) ThreadOf(tid int, started uint64, alive bool) omis.Token {
	return h.e.reg.threadOfRow(h.p, &program.Row{TID: tid, Started: started, Alive: alive})
}

// RememberThreads: see placing.ProcessHost.
func (h hosted) RememberThreads() { h.e.reg.rememberThreads(h.p) }

// InTheWay: see placing.ProcessHost.
func (h hosted) InTheWay(c *placing.Request, leaving map[*placing.Subscription]bool) error {
	p := h.p
	others := func(which func(pointKey) bool) (by []*placing.Request, any bool) {
		for key, pt := range p.points {
			if !which(key) {
				continue
			}
			list, all := pt.others(leaving)
			by, any = append(by, list...), any || !all
		}
		slices.SortFunc(by, func(a, b *placing.Request) int { return a.Num - b.Num })
		return by, any
	}
	if kind := c.Watch.Event; kind != node.EventReachedAddr {
		if !placing.IsSysCall(kind) {
			return nil
		}
		if by, any := others(func(key pointKey) bool { return p.programs.CallsUnmarked(key.kind) }); any {
			return placing.ByHeldThreads(by)
		}
		return nil
	}
	at := pointKey{kind: node.EventReachedAddr, addr: c.Watch.Addr}
	if pt := p.points[at]; pt != nil {
		if by, all := pt.others(leaving); !all {
			return placing.ByBreakpoint(by, at.addr)
		}
	}
	if p.roaming == 0 {
		return nil
	}
	if by, any := others(func(key pointKey) bool { return placing.Roams(key.kind) }); any {
		return placing.Hinders(by, "another request looks out for library calls or single instructions, whose breakpoints may stand anywhere")
	}
	return nil
}

// others lists the requests that need the point, except those in leaving. all reports whether leaving has every
// request of the point.
func (p *point) others(leaving map[*placing.Subscription]bool) (list []*placing.Request, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subs {
		if !leaving[s.of] {
			list = append(list, &s.csr.run)
		}
	}
	return list, len(p.subs) > 0 && len(list) == 0
}

var _ placing.Held = (*subscription)(nil)

// Hits: see placing.Held.
func (s *subscription) Hits() iter.Seq2[string, placing.Hits] {
	return func(yield func(string, placing.Hits) bool) {
		s.point.mu.Lock()
		defer s.point.mu.Unlock()
		for how, n := range s.hits {
			if !yield(how, *n) {
				return
			}
		}
	}
}

// End takes the request out of its point, which is removed after its last request.
func (s *subscription) End() {
	if s.point.withdraw(s) {
		s.point.e.unplant(s.point)
	}
}

// Keep makes what programs measure for an object outlive the monitor, in placements that can do that
// (program.Keeper). The object adopts what a former monitor left under the key, in the processes of the tool's
// scope and in the ended ones. lost is the time when the former monitor was found dead, if values of the key were in
// its memory.
func (t *Tool) Keep(object omis.Token, key string, ended ...omis.ProcID) (lost time.Time, err error) {
	cell, ok := t.cell(object)
	if !ok {
		return lost, unknownToken(object)
	}
	e := t.e
	e.admin.Lock()
	defer e.admin.Unlock()
	procs := owner{t}.Processes()
	for _, id := range ended {
		procs = append(procs, &e.reg.endedProcess(place{e.home, id}).programs)
	}
	return e.placing.Keep(cell, key, procs)
}

// Settle removes what former monitors have left and no object has adopted, and reports what that was. Objects that
// are kept have been made before.
func (e *Engine) Settle() ([]program.Orphan, error) {
	e.admin.Lock()
	defer e.admin.Unlock()
	return e.placing.Settle(mapped(e.nodes, func(n *machine) *placing.Machine { return &n.Machine }))
}

// Spent returns what requests have cost the processes that they were enabled in. It first has their
// placements calibrated, if that has not been done.
func (t *Tool) Spent(requests []omis.Token) (omis.Spending, error) {
	t.e.admin.Lock()
	list, err := t.named(requests)
	calibrate := t.e.placing.Calibrator(list)
	t.e.admin.Unlock()
	if err != nil {
		return omis.Spending{}, err
	}
	calibrate()
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	return t.e.placing.Spent(list), nil
}

// named returns the conditional requests of some tokens.
func (t *Tool) named(requests []omis.Token) ([]*placing.Request, error) {
	var list []*placing.Request
	for _, token := range requests {
		o, err := t.find(token)
		if err != nil {
			return nil, err
		}
		c, ok := o.(*csr)
		if !ok {
			return nil, omis.Errorf(omis.TypeMismatch, "%s is no conditional request", token)
		}
		list = append(list, &c.run)
	}
	return list, nil
}

// cells returns the tool's objects that programs can change.
func (t *Tool) cells() []service.Cell { return valuesOf[service.Cell](t) }

// valuesOf returns the values of a tool's objects that are of a type.
func valuesOf[V any](t *Tool) (list []V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, items := range t.items {
		for _, it := range items {
			if v, ok := it.value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// guard makes the monitor, instead of programs, change the objects that a locked list names, as long as these
// exist. The caller does not hold Engine.admin.
func (x *execution) guard(steps []step) {
	var cells []service.Cell
	for i := range steps {
		cells = append(cells, x.cells(&steps[i])...)
	}
	if len(cells) == 0 {
		return
	}
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	for _, cell := range cells {
		x.e.placing.Guard(owner{x.tool}, cell)
	}
}

// cells returns those of the objects named by a step that programs can change.
func (x *execution) cells(s *step) []service.Cell {
	if s.subject < 0 || isPlaced(s.service.Object) {
		return nil
	}
	c, failed := x.bound(s)
	if failed != nil {
		return nil
	}
	conv := conversions{tool: x.tool}
	objs, _ := conv.objects(c.args[s.subject], s.service.Params[s.subject])
	var cells []service.Cell
	for _, o := range objs {
		if it, ok := o.(*item); ok {
			if cell, ok := it.value.(service.Cell); ok {
				cells = append(cells, cell)
			}
		}
	}
	return cells
}
