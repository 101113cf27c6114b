//go:build linux && amd64

package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// That threads get and lose processors is seen at two tracepoints, in three roles: a
// thread leaves a processor, another gets it, and one is woken. What a thread was
// doing before is in a table by threads, so that waking one that does not wait is no
// event, and that what a tracepoint has missed is caught up with.

// role is what a thread does at a tracepoint.
type role uint8

const (
	leaving role = iota
	coming
	woken
	roles
)

// tracepointOf are the tracepoints, by roles.
var tracepointOf = [roles]string{"sched_switch", "sched_switch", "sched_wakeup"}

// kindsOf are the events that programs of a role may have to do with. A thread that
// leaves has come before, which may have been missed.
func kindsOf(r role) []node.EventKind {
	switch r {
	case leaving:
		return []node.EventKind{node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventScheduled, node.EventUnblocked}
	case coming:
		return []node.EventKind{node.EventScheduled, node.EventUnblocked}
	}
	return []node.EventKind{node.EventUnblocked}
}

// pointOf is under which point the program of a role stands.
func pointOf(r role) point {
	return point{[roles]node.EventKind{node.EventDescheduled, node.EventScheduled, node.EventUnblocked}[r], 0}
}

func isScheduling(kind node.EventKind) bool { return slices.Contains(kindsOf(leaving), kind) }

// schedulingHooks are the tracepoints that it takes to see an event.
func (e *events) schedulingHooks(kind node.EventKind) []*hook {
	var list []*hook
	for r := range roles {
		if slices.Contains(kindsOf(r), kind) {
			list = append(list, &e.roles[r])
		}
	}
	return list
}

// judgeScheduling says why scheduling cannot be seen.
func (e *events) judgeScheduling() error {
	if e.layout.nested {
		return &program.Refusal{Why: "the monitor lives in a pid namespace of its own, where programs in the kernel cannot tell which threads get processors"}
	}
	return nil
}

// placeRoles assembles the programs for the scheduling of a process.
func (e *events) placeRoles(on *watched) error {
	for r := range roles {
		var list []*listener
		for _, l := range on.all {
			if isScheduling(l.point.kind) && slices.Contains(kindsOf(r), l.point.kind) {
				list = append(list, l)
			}
		}
		at := recordRoles + 2*int(r)
		err := e.settle(on, pointOf(r), &e.roles[r], len(list) > 0,
			func() asm.Instructions { return e.scheduled(r, list) },
			func(s slot) { storeHalf(on.record.data[at:], uint16(s)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// What the table knows of a thread.
const (
	stateNow     = 0
	stateSince   = 8
	stateStarted = 16 // when the thread began; 0: the monitor, who wrote the row, cannot tell
	sizeOfState  = 24
)

// States of threads.
const (
	isReady = iota
	isWaiting
	isRunning
)

func newStates(set maps) (*ebpf.Map, error) {
	return set.Map(&ebpf.MapSpec{Name: "states", Type: ebpf.Hash, KeySize: 4, ValueSize: sizeOfState, MaxEntries: 1 << 15, Flags: unix.BPF_F_NO_PREALLOC})
}

// noteWaiting notes which threads of a process wait, now that somebody wants to know when
// they go on. Who is known already is left alone.
func (e *events) noteWaiting(on *watched, list []*listener) {
	if !slices.ContainsFunc(list, func(l *listener) bool { return l.point.kind == node.EventUnblocked }) {
		return
	}
	tids, err := proc.Threads(on.proc.PID)
	if err != nil {
		return // it has ended
	}
	row := make([]byte, sizeOfState)
	row[stateNow] = isWaiting
	for _, tid := range tids {
		if waits(tid) {
			_ = e.states.Update(uint32(tid), row, ebpf.UpdateNoExist) // full: its first event is missed
		}
	}
}

// waits tells whether a thread waits for something.
func waits(tid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return strings.HasPrefix(rest, " S") || strings.HasPrefix(rest, " D")
}
