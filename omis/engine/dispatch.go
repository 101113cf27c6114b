package engine

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/service"
)

// pointKey is what is looked out for in a process.
type pointKey struct {
	kind omis.EventKind
	addr uint64
}

// point is one watch in a process. The requests of all tools that wait for the
// same thing share it, so it is planted once, and they are served in the order in
// which they were defined.
type point struct {
	e      *Engine
	proc   *process
	key    pointKey
	cancel func() error // guarded by Engine.admin

	mu   sync.Mutex // held while local actions run
	subs []*subscription
	occ  service.Occurrence // of the hit at hand
	room [1]omis.Value
}

// subscription is a request's share in a point.
type subscription struct {
	csr     *csr
	threads map[omis.Token]bool // nil: all threads
	local   *localList          // nil: the list is executed by the engine
	point   *point
}

// subscribe begins to look out for a request's event in a process. The caller
// holds Engine.admin.
func (e *Engine) subscribe(c *csr, t target) error {
	s := &subscription{csr: c, threads: t.threads}
	if c.placement.local {
		s.local = newLocalList(c)
	}
	p, err := e.pointAt(t.proc, pointKey{c.event.source.kind, c.event.addr}, s)
	if err != nil {
		return err
	}
	s.point = p
	c.subs[t.proc] = s
	return nil
}

// pointAt enters a subscription at a point, which is planted if it does not stand
// yet. Without a subscription the point just comes to stand.
func (e *Engine) pointAt(proc *process, key pointKey, s *subscription) (*point, error) {
	p := proc.points[key]
	if p != nil {
		p.enter(s)
		return p, nil
	}
	p = &point{e: e, proc: proc, key: key}
	p.enter(s)
	cancel, err := e.node.Watch(omis.Watch{Event: key.kind, Proc: proc.id, Addr: key.addr}, p.handle)
	if err != nil {
		return nil, err
	}
	p.cancel = cancel
	proc.points[key] = p
	return p, nil
}

// unsubscribe ends a request's share in a process. When it returns, no local list
// of it is running there. The caller holds Engine.admin.
func (e *Engine) unsubscribe(c *csr, proc *process) {
	s := c.subs[proc]
	delete(c.subs, proc)
	if s.point.withdraw(s) {
		e.unplant(s.point)
	}
}

// unplant takes away a point that nobody needs. How a process ends is always
// looked out for, as long as a tool is attached.
func (e *Engine) unplant(p *point) {
	if p.key.kind == omis.EventProcTerminated && p.proc.tools > 0 || p.proc.points[p.key] != p {
		return
	}
	delete(p.proc.points, p.key)
	if err := p.cancel(); err != nil {
		e.log.Warn("cannot take a watch away", "process", p.proc.token, "address", p.key.addr, "error", err)
	}
}

func (p *point) enter(s *subscription) {
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.subs, func(other *subscription) bool { return other.csr.num > s.csr.num })
	if i < 0 {
		i = len(p.subs)
	}
	p.subs = slices.Insert(p.subs, i, s)
}

// withdraw returns whether nobody is left.
func (p *point) withdraw(s *subscription) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs = slices.DeleteFunc(p.subs, func(other *subscription) bool { return other == s })
	return len(p.subs) == 0
}

// handle runs on the goroutine that owns the process. Local lists are executed at
// once, until the first list that is not: that one, and all after it, wait their
// turn in the process's queue while the thread is held.
func (p *point) handle(hit *omis.Hit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.occurred(hit)
	var waiting []*csr
	for _, s := range p.subs {
		if s.threads != nil && !s.threads[p.occ.Thread] {
			continue
		}
		// The lock is not free while a locked list is executed.
		if waiting == nil && s.local != nil && p.e.lists.TryRLock() {
			s.local.run(&p.occ, p.place(s.csr))
			p.e.lists.RUnlock()
			continue
		}
		waiting = append(waiting, s.csr)
	}
	if waiting != nil || p.ends() {
		p.enqueue(hit, waiting)
	}
}

// occurred fills in what actions see of the hit.
func (p *point) occurred(hit *omis.Hit) {
	p.occ = service.Occurrence{
		Node: p.e.self.token, Proc: p.proc.token, Thread: omis.Undefined,
		Time: hit.Time, SP: hit.SP, Now: hit.Now,
	}
	if p.key.kind != omis.EventProcTerminated {
		p.occ.Thread = p.e.reg.thread(p.proc, hit.TID).token
	}
	if p.key.kind == omis.EventThreadCreated {
		p.room[0] = omis.TokenValue(p.e.reg.thread(p.proc, hit.Child).token)
		p.occ.Params = p.room[:]
	}
}

// place is the object where the event occurred, for a request's reply.
func (p *point) place(c *csr) omis.Token { return p.occ.Place(c.event.service.Object) }

// ends tells whether the event is the end of an object, whose tokens go with it.
func (p *point) ends() bool {
	return p.key.kind == omis.EventProcTerminated || p.key.kind == omis.EventThreadTerminated
}

// enqueue leaves lists to the process's queue.
func (p *point) enqueue(hit *omis.Hit, waiting []*csr) {
	occ := p.occ
	occ.Params = slices.Clone(occ.Params)
	tid, child := hit.TID, hit.Child
	release := hit.Hold()
	task := func() {
		defer release()
		p.complete(&occ, child)
		for _, c := range waiting {
			c.trigger(&occ, occ.Place(c.event.service.Object), nil)
		}
		p.ended(tid)
	}
	if !p.proc.queue.push(task, p.ends()) {
		release()
		p.overflow(waiting)
	}
}

// complete finds out what takes the node's help.
func (p *point) complete(occ *service.Occurrence, child int) {
	if p.key.kind != omis.EventProcCreated {
		return
	}
	created := omis.Undefined
	if id, err := p.e.node.Identify(child); err == nil {
		created = p.e.reg.process(id).token
	}
	occ.Params = []omis.Value{omis.TokenValue(created)}
}

// ended makes the tokens of what has ended unknown, after the lists were executed.
func (p *point) ended(tid int) {
	switch p.key.kind {
	case omis.EventProcTerminated:
		p.e.processEnded(p.proc)
	case omis.EventThreadTerminated:
		p.e.reg.dropThread(p.e.reg.thread(p.proc, tid))
	}
}

func (p *point) overflow(waiting []*csr) {
	for _, c := range waiting {
		reply := whole(failure(omis.Errorf(omis.NoMemory,
			"an event at %s was lost: %d action lists wait for execution already", p.proc.token, maxPending), p.proc.token))
		c.note(reply)
		c.tool.replies.push(c.to, reply)
	}
}
