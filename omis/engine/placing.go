package engine

import (
	"errors"
	"slices"
	"strings"

	"mirador/omis/node"
	"mirador/omis/program"
)

// A request whose actions only count and measure time is a program, and runs in the
// first of its node's placements (program.Machine) that does not refuse it. Where all
// do, the monitor executes the request itself (dispatch.go). This file finds out what
// may be placed; plant.go places it. All functions want Engine.admin held by their
// caller.

// candidate is a request that is about to get a place in a process, or may have to move
// to another.
type candidate struct {
	*subscription
	bond    *bond
	steps   []compiled
	placing program.Placing
	in      *inPlace // not a subscription's yet
	err     error    // why not even the monitor can execute it
}

// obstacle is why a placement does not run a program; without a name: why none does.
type obstacle struct {
	placement, why string
	by             []*csr // the requests in the way, if it is requests
	passing        bool   // it may be gone soon
}

// refuse notes why a placement does not run the program.
func (s *subscription) refuse(placement string, err error) {
	o := obstacle{placement: placement, why: reason(err)}
	var h *hindrance
	if errors.As(err, &h) {
		o.by = h.by
	}
	var r *program.Refusal
	o.passing = errors.As(err, &r) && r.Passing
	s.refused = append(s.refused, o)
}

// reason is an error in the words of a placement.
func reason(err error) string {
	var r *program.Refusal
	if errors.As(err, &r) {
		return r.Why
	}
	return err.Error()
}

// reasons are refusals in the words of the placement that was taken instead.
func reasons(list []obstacle) string {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = r.why
		if r.placement != "" {
			words[i] = r.placement + ": " + r.why
		}
	}
	return strings.Join(words, "; ")
}

// compile makes the request's program, if it may run anywhere in the process but in the
// monitor. The error says why it may not.
func (k *candidate) compile(e *Engine) (err error) {
	c, p := k.csr, k.proc
	switch {
	case !c.placement.Local || !isPlaceable(c.event.source.kind):
		return declined("%s", c.placement.Why)
	case len(p.node().can.Placers) == 0:
		return declined("this monitor generates no code for the program or the kernel")
	case c.wantsReplies():
		return declined("the tool wants a reply for each execution")
	case c.tool.hidesAny(p):
		return declined("the tool has detached from a thread of the process")
	}
	if k.steps, err = c.compile(p); err != nil {
		return err
	}
	if e.isGuarded(k.steps) {
		return inLockedList()
	}
	k.steps = e.withHits(k.steps)
	if err := p.inTheWay(c, nil); err != nil {
		return err
	}
	w := c.event.watch
	w.Proc, w.Threads = p.at().id, e.reg.tids(k.only)
	if k.only != nil && (len(k.only) == 0 || len(w.Threads) != len(k.only)) {
		return declined("a thread that it names has ended")
	}
	k.placing = program.Placing{Watch: w, Program: make(program.Program, len(k.steps))}
	for i, s := range k.steps {
		if s.cell == nil && !c.imagined {
			return declined("an object of the list does not exist")
		}
		k.placing.Program[i] = s.op
	}
	return nil
}

// isPlaceable tells whether there are placements for a kind of event: others are the
// monitor's own doing, or have to wait for it.
func isPlaceable(kind node.EventKind) bool {
	switch kind {
	case node.EventReachedAddr, node.EventSysCallStarted, node.EventSysCallEnded,
		node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return true
	}
	return false
}

// inTheWay says why no program can be placed beside what the monitor executes in the
// process. It does not count the requests in leaving, which are about to be placed anew.
func (p *process) inTheWay(c *csr, leaving map[*subscription]bool) error {
	others := func(which func(pointKey) bool) (by []*csr, any bool) {
		for key, pt := range p.points {
			if !which(key) {
				continue
			}
			list, all := pt.others(leaving)
			by, any = append(by, list...), any || !all
		}
		slices.SortFunc(by, func(a, b *csr) int { return a.num - b.num })
		return by, any
	}
	if kind := c.event.source.kind; kind != node.EventReachedAddr {
		if !isSysCall(kind) {
			return nil
		}
		if by, any := others(func(key pointKey) bool { return plants(key.kind) }); any {
			return hinders(by, "threads of the process are held for other requests, and make system calls of their own for that")
		}
		return nil
	}
	at := pointKey{kind: node.EventReachedAddr, addr: c.event.watch.Addr}
	if pt := p.points[at]; pt != nil {
		if by, all := pt.others(leaving); !all {
			return hinders(by, "a breakpoint of another request stands at %#x", at.addr)
		}
	}
	if p.roaming == 0 {
		return nil
	}
	if by, any := others(func(key pointKey) bool { return roams(key.kind) }); any {
		return hinders(by, "another request looks out for library calls or single instructions, whose breakpoints may stand anywhere")
	}
	return nil
}

// others lists the requests that need the point, but for those in leaving; all reports
// whether leaving has every one of them.
func (p *point) others(leaving map[*subscription]bool) (list []*csr, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subs {
		if !leaving[s] {
			list = append(list, s.csr)
		}
	}
	return list, len(p.subs) > 0 && len(list) == 0
}

// roams tells whether the node finds out itself where to plant for a kind of event, now
// or later. A breakpoint and a program at one address spoil each other.
func roams(kind node.EventKind) bool {
	switch kind {
	case node.EventLibCallStarted, node.EventLibCallEnded, node.EventStepped, node.EventSteppedOver:
		return true
	}
	return false
}

func isSysCall(kind node.EventKind) bool {
	return kind == node.EventSysCallStarted || kind == node.EventSysCallEnded
}

// plants tells whether the node plants in the code of a process for a kind of event. For
// that threads make system calls, and where they are held by rendezvous at each hit. The
// node leaves them out when it looks out for system calls itself; programs cannot tell.
func plants(kind node.EventKind) bool { return kind == node.EventReachedAddr || roams(kind) }
