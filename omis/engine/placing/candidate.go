package placing

import (
	"errors"
	"strings"

	"mirador/omis/node"
	"mirador/omis/program"
)

// This file finds out whether a request can be a program, and plant.go places it. All functions want the
// lock held by their caller.

// candidate is a subscription that is about to be placed, or may have to move.
type candidate struct {
	*Subscription
	bond    *bond
	steps   []Step
	placing program.Placing
	in      *inPlace // not the subscription's yet
	err     error    // why even the monitor cannot execute the request
}

// obstacle is why a placement does not run a program. Without a name it is why no placement does.
type obstacle struct {
	placement, why string
	by             []*Request // requests that are in the way
	passing        bool       // the reason may be temporary
}

// refuse records why a placement does not run the program.
func (s *Subscription) refuse(placement string, err error) {
	o := obstacle{placement: placement, why: Reason(err)}
	var h *hindrance
	if errors.As(err, &h) {
		o.by = h.by
	}
	var r *program.Refusal
	o.passing = errors.As(err, &r) && r.Passing
	s.refused = append(s.refused, o)
}

// Reason returns an error in the words of a placement.
func Reason(err error) string {
	var r *program.Refusal
	if errors.As(err, &r) {
		return r.Why
	}
	return err.Error()
}

// reasons joins obstacles to a text.
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

// compile makes the request's program, or says why only the monitor can execute the request in the process.
func (k *candidate) compile(x *Placing) (err error) {
	c, p := k.Request, k.Proc
	switch {
	case !c.Base.Local || !isPlaceable(c.Watch.Event):
		return Declined("%s", c.Base.Why)
	case len(p.machine().Can.Placers) == 0:
		return Declined("this monitor generates no code for the program or the kernel")
	case c.Owner.WantsReplies():
		return Declined("the tool wants a reply for each execution")
	case c.Owner.Hides(p):
		return Declined("the tool has detached from a thread of the process")
	}
	if k.steps, err = c.Owner.Compile(p); err != nil {
		return err
	}
	if x.isGuarded(k.steps) {
		return inLockedList()
	}
	k.steps = x.withHits(k.steps)
	if err := p.Host.InTheWay(c, nil); err != nil {
		return err
	}
	w := c.Watch
	w.Proc, w.Threads = p.id(), x.host.TIDs(k.Only)
	if k.Only != nil && (len(k.Only) == 0 || len(w.Threads) != len(k.Only)) {
		return Declined("a thread that it names has ended")
	}
	k.placing = program.Placing{Watch: w, Program: make(program.Program, len(k.steps))}
	for i, s := range k.steps {
		if s.Cell == nil && !c.Imagined {
			return Declined("an object of the list does not exist")
		}
		k.placing.Program[i] = s.Op
	}
	return nil
}

// isPlaceable reports whether placements support a kind of event. The monitor itself makes other events, or
// must wait for them.
func isPlaceable(kind node.EventKind) bool {
	switch kind {
	case node.EventReachedAddr, node.EventSysCallStarted, node.EventSysCallEnded,
		node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return true
	}
	return false
}

// Roams reports whether the node itself finds the addresses of breakpoints for a kind of event, now or
// later. There must not be a breakpoint and a program at one address.
func Roams(kind node.EventKind) bool {
	switch kind {
	case node.EventLibCallStarted, node.EventLibCallEnded, node.EventStepped, node.EventSteppedOver:
		return true
	}
	return false
}

// IsSysCall reports whether an event is the start or the end of a system call.
func IsSysCall(kind node.EventKind) bool {
	return kind == node.EventSysCallStarted || kind == node.EventSysCallEnded
}

// CallsUnmarked reports whether threads make system calls for the monitor because of a kind of event that programs
// at system calls cannot distinguish from the process's own. Threads make such calls where the node plants breakpoints
// or jumps, also when they are held by rendezvous.
func (p *Process) CallsUnmarked(kind node.EventKind) bool {
	return (kind == node.EventReachedAddr || Roams(kind)) && !p.machine().Can.MarksCalls
}
