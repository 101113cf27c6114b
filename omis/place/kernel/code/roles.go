//go:build linux && amd64

package code

import (
	"slices"

	"mirador/omis/node"
	"mirador/omis/program"
)

// The scheduling of threads is observed at two tracepoints, in three roles: a thread leaves a processor, a
// thread gets a processor, and a thread is woken. A table has the state of each thread. So waking a thread
// that does not wait is no event, and if a tracepoint has not fired, the missed event is raised later.

// Role is what a thread does at a tracepoint.
type Role uint8

const (
	Leaving Role = iota
	Coming
	Woken
	Roles
)

// tracepoints has the tracepoint of each role.
var tracepoints = [Roles]string{"sched_switch", "sched_switch", "sched_wakeup"}

// KindsOf returns the events that a program of a role can raise. A thread that leaves its processor may
// raise the events of getting it, if they were missed.
func KindsOf(r Role) []node.EventKind {
	switch r {
	case Leaving:
		return []node.EventKind{node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventScheduled, node.EventUnblocked}
	case Coming:
		return []node.EventKind{node.EventScheduled, node.EventUnblocked}
	}
	return []node.EventKind{node.EventUnblocked}
}

// TracepointOf returns the tracepoint of a role.
func TracepointOf(r Role) string { return tracepoints[r] }

// IsScheduling reports whether an event is one of scheduling.
func IsScheduling(kind node.EventKind) bool { return slices.Contains(KindsOf(Leaving), kind) }

// CanSeeScheduling reports why programs cannot observe scheduling.
func (l *Layout) CanSeeScheduling() error {
	if l.nested {
		return &program.Refusal{Why: "the monitor lives in a pid namespace of its own, where programs in the kernel cannot tell which threads get processors"}
	}
	return nil
}

// An entry of the table of thread states: offsets.
const (
	StateNow     = 0
	stateSince   = 8
	stateStarted = 16 // start of the thread; 0 if the monitor has made the entry, which does not know it
	SizeOfState  = 24
)

// States of threads.
const (
	isReady = iota
	IsWaiting
	isRunning
)
