package engine

import (
	"fmt"
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// pointKey identifies a watch within a process.
type pointKey struct {
	kind   node.EventKind
	addr   uint64
	detail string // name of a call, numbers, threads
	hold   bool   // the process is held at its exit
}

// isEnd reports whether the event is the end of the process itself. Lists that are executed while the
// process is held at its exit come before it.
func (k pointKey) isEnd() bool { return k.kind == node.EventProcTerminated && !k.hold }

func keyOf(w *node.Watch) pointKey {
	key := pointKey{kind: w.Event, addr: w.Addr, detail: w.Name, hold: w.Hold}
	if len(w.Signals) > 0 || len(w.Threads) > 0 {
		key.detail = fmt.Sprint(w.Name, w.Signals, w.Threads)
	}
	return key
}

// point is one watch in a process. The requests of all tools that wait for the same event share it, so it
// is planted once. They are served in the order in which they were defined.
type point struct {
	e      *Engine
	proc   *process
	watch  node.Watch
	key    pointKey
	node   *machine     // where it is planted
	cancel func() error // guarded by Engine.admin

	mu    sync.Mutex // held while local actions run
	subs  []*subscription
	timed bool               // some requests open or close intervals
	told  bool               // some requests use parameters of the event
	occ   service.Occurrence // of the current hit
	who   held               // the thread of the current hit
	flags uint64             // of the processor at the current hit
	cpu   func() (int64, error)
	info  func(node.ProcFields) (node.ProcInfo, error)
	meter func(thread omis.Token, event string) (node.Meter, error)
	room  [13]omis.Value
}

// subscription is a request's share in a point.
type subscription struct {
	csr   *csr
	of    *placing.Subscription
	only  map[omis.Token]bool // nil: all threads, or queues
	local *localList          // nil: the list is not local
	point *point

	hits    map[string]*placing.Hits // by how the thread was held; point.mu guards it
	last    *placing.Hits            // the element of hits for lastHow, which most hits use again
	lastHow string
}

// isDense reports whether a kind of event is so frequent that the node should watch only the requested
// threads.
func isDense(kind node.EventKind) bool {
	switch kind {
	case node.EventStepped, node.EventSteppedOver, node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return true
	}
	return false
}

// pointAt enters a subscription at a point, and plants the point if necessary. Without a subscription it
// only plants the point.
func (e *Engine) pointAt(proc *process, w node.Watch, s *subscription) (*point, error) {
	key := keyOf(&w)
	p := proc.points[key]
	if p != nil {
		p.enter(s)
		return p, nil
	}
	p = &point{e: e, proc: proc, watch: w, key: key}
	p.cpu = func() (int64, error) { return p.who.cpuTime() }
	p.info = func(f node.ProcFields) (node.ProcInfo, error) { return p.who.info(f) }
	p.meter = func(thread omis.Token, event string) (node.Meter, error) { return p.who.meter(e, thread, event) }
	p.enter(s)
	if err := p.plant(); err != nil {
		return nil, err
	}
	proc.points[key] = p
	if placing.Roams(key.kind) {
		proc.roaming++
	}
	return p, nil
}

// plant sets the watch for the event on the process's node. Events that the engine causes need no watch.
func (p *point) plant() error {
	at := p.proc.at()
	p.node = at.node
	if p.key.kind >= firstOfEngine {
		p.cancel = func() error { return nil }
		return nil
	}
	p.watch.Proc = at.id
	cancel, err := at.node.Watch(p.watch, p.handle)
	if err != nil {
		return err
	}
	p.cancel = cancel
	return nil
}

// unplant removes a point that has no subscriptions. The end of a process is watched for as long as a tool
// is attached.
func (e *Engine) unplant(p *point) {
	if p.key.isEnd() && p.proc.tools > 0 || p.proc.points[p.key] != p {
		return
	}
	delete(p.proc.points, p.key)
	if placing.Roams(p.key.kind) {
		p.proc.roaming--
	}
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
	p.timed = p.timed || s.csr.run.Times
	p.told = p.told || slices.ContainsFunc(s.csr.steps, func(s step) bool { return s.params })
}

// withdraw removes a subscription, and reports whether it was the last one.
func (p *point) withdraw(s *subscription) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs = slices.DeleteFunc(p.subs, func(other *subscription) bool { return other == s })
	return len(p.subs) == 0
}

// handle runs on the goroutine that owns the process. It executes local lists at once, up to the first list
// that is not local. That list and all later ones wait in the process's queue while the thread is held.
func (p *point) handle(hit *node.Hit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.occurred(hit)
	var waiting []*csr
	p.charge(hit.Held)
	for _, s := range p.subs {
		if !p.concerns(s) {
			continue
		}
		// The lock is taken while a locked list is executed. A new process has no token until the node has
		// been asked about it.
		if waiting == nil && s.local != nil && hit.ChildProc == 0 && p.node.lists.TryRLock() {
			s.local.run(&p.occ, p.objectOf(s.csr))
			p.node.lists.RUnlock()
			continue
		}
		waiting = append(waiting, s.csr)
	}
	if waiting != nil || p.ends() {
		p.enqueue(hit, waiting)
	}
}

// charge counts a hit for the requests that it concerns. The thread is held once for all of them, so each
// request gets a part of the cost.
func (p *point) charge(how string) {
	n := 0
	for _, s := range p.subs {
		if p.reaches(s) {
			n++
		}
	}
	for _, s := range p.subs {
		if p.reaches(s) {
			h := s.hitsBy(how)
			h.Count++
			h.Parts += 1 / float64(n)
		}
	}
}

// hitsBy returns the element of hits for a way of holding the thread.
func (s *subscription) hitsBy(how string) *placing.Hits {
	if s.last != nil && s.lastHow == how {
		return s.last
	}
	h := s.hits[how]
	if h == nil {
		h = &placing.Hits{}
		s.hits[how] = h
	}
	s.last, s.lastHow = h, how
	return h
}

// concerns reports whether a hit is one that a request waits for: it belongs to one of the request's
// threads or queues, and its tool has not detached from the thread.
func (p *point) concerns(s *subscription) bool {
	return s.csr.event.watch.When.Holds(p.flags) && p.reaches(s)
}

// reaches does what concerns does, whatever the flags are: the thread was held for the request.
func (p *point) reaches(s *subscription) bool {
	part := p.occ.Thread
	if p.key.kind == node.EventQueueExtended {
		part = p.occ.Params[0].Token()
	}
	if s.only != nil && !s.only[part] {
		return false
	}
	return s.csr.tool.hidden.Load() == nil || !s.csr.tool.hides(p.occ.Thread)
}

// occurred sets what actions see of the hit.
func (p *point) occurred(hit *node.Hit) {
	p.flags = hit.Flags
	p.occ = service.Occurrence{
		Node: p.node.token, Proc: p.proc.token, Thread: omis.Undefined,
		Time: hit.Time, At: hit.Place(), Now: hit.Now, Held: hit.Held,
	}
	p.who, p.occ.CPU, p.occ.Info, p.occ.Threads = held{p.node, hit.Proc, hit.TID, hit.Held}, p.cpu, p.info, p.e.threads
	p.occ.Meter, p.occ.ThreadInfo = p.meter, p.e.reg.threadInfo
	if p.timed {
		cost, _ := p.node.Cost(omis.Trap, hit.Held)
		p.occ.Before, p.occ.After = int64(cost.Before), int64(cost.After)
	}
	if p.node.Skew != 0 {
		p.occ.Time += p.node.Skew
		p.occ.Now = p.node.clock
	}
	if hit.TID != 0 && p.key.kind != node.EventProcTerminated {
		p.occ.Thread = p.e.reg.threadOfLife(p.proc, hit.TID, hit.Life).token
	}
	p.occ.Params = p.params(hit)
}

// params returns the event's own context parameters, if they are known without asking the node.
func (p *point) params(hit *node.Hit) []omis.Value {
	switch p.key.kind {
	case node.EventReachedAddr:
		if !p.told {
			return nil // no request uses them, and hits may be frequent
		}
		p.room = program.ArgumentsOf(hit.Args)
		return p.room[:]
	case node.EventThreadCreated:
		if hit.ChildProc != 0 {
			return nil
		}
		p.room[0] = omis.TokenValue(p.e.reg.threadOfLife(p.proc, hit.Child, hit.ChildLife).token)
		return p.room[:1]
	case node.EventSignal:
		p.room[0] = omis.Int(int64(hit.Signal))
		return p.room[:1]
	case node.EventNodeAdded, node.EventNodeRemoved:
		p.room[0] = omis.TokenValue(p.e.peer(hit.Peer))
		return p.room[:1]
	case node.EventQueueExtended:
		p.room[0] = omis.TokenValue(p.e.reg.queue(p.proc, hit.TID, hit.Queue).token)
		return append(p.room[:1], p.e.messageValues(p.node, &hit.Message)...)
	case node.EventTaggedMessage:
		return append(p.room[:0], p.e.messageValues(p.node, &hit.Message)...)
	}
	return hit.Params
}

// objectOf returns the object where the event occurred, for a request's reply.
func (p *point) objectOf(c *csr) omis.Token { return p.occ.Place(c.event.service.Object) }

// ends reports whether the event is the end of an object, whose tokens end with it.
func (p *point) ends() bool {
	return p.key.isEnd() || p.key.kind == node.EventThreadTerminated
}

// enqueue adds lists to the process's queue.
func (p *point) enqueue(hit *node.Hit, waiting []*csr) {
	occ, who := p.occ, p.who
	occ.Params, occ.CPU, occ.Info = slices.Clone(occ.Params), who.cpuTime, who.info
	occ.Meter = func(thread omis.Token, event string) (node.Meter, error) { return who.meter(p.e, thread, event) }
	tid, life, child, newProc := hit.TID, hit.Life, hit.Child, hit.ChildProc
	release := hit.Hold()
	task := func() {
		defer release()
		p.complete(&occ, child, newProc)
		for _, c := range waiting {
			c.trigger(&occ, occ.Place(c.event.service.Object), nil)
		}
		p.ended(tid, life)
	}
	if !p.proc.queue.push(task, p.ends()) {
		release()
		p.overflow(waiting)
	}
}

// complete adds parameters that only the node knows.
func (p *point) complete(occ *service.Occurrence, child, newProc int) {
	if p.key.kind == node.EventProcCreated {
		newProc = child
	}
	if newProc == 0 {
		return
	}
	created := omis.Undefined
	if id, err := p.node.Identify(newProc); err == nil {
		proc := p.e.reg.process(place{p.node, id})
		created = proc.token
		if p.key.kind == node.EventThreadCreated {
			created = p.e.reg.thread(proc, child).token
		}
	}
	occ.Params = []omis.Value{omis.TokenValue(created)}
}

// ended makes the tokens of an object unknown that has ended, after the lists were executed.
func (p *point) ended(tid int, life uint64) {
	switch {
	case p.key.isEnd():
		p.e.processEnded(p.proc)
	case p.key.kind == node.EventThreadTerminated:
		p.e.reg.endThread(p.proc, tid, life)
	}
}

func (p *point) overflow(waiting []*csr) {
	for _, c := range waiting {
		reply := whole(failure(omis.Errorf(omis.NoMemory,
			"an event at %s was lost: %d action lists wait for execution already", p.proc.token, maxPending), p.proc.token))
		c.countErrors(reply)
		c.tool.replies.push(c.to, reply)
	}
}
