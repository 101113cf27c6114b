//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
)

// schedulingHooks returns the hooks whose programs together see all events of a kind.
func (e *events) schedulingHooks(kind node.EventKind) []*hook {
	var list []*hook
	for r := range code.Roles {
		if slices.Contains(code.KindsOf(r), kind) {
			list = append(list, &e.roles[r])
		}
	}
	return list
}

// assembleRoles assembles the programs for the scheduling of a process.
func (e *events) assembleRoles(on *watched) error {
	for r := range code.Roles {
		var list []*listener
		for _, l := range on.all {
			if slices.Contains(code.KindsOf(r), l.point.kind) {
				list = append(list, l)
			}
		}
		err := e.setBody(on, pointOf(r), &e.roles[r], len(list) > 0,
			func() asm.Instructions { return e.code().AtRole(r, codesOf(list)) },
			func(s slot) { on.record.setSlot(code.RecordRoles+2*int(r), s) })
		if err != nil {
			return err
		}
	}
	return nil
}

// pointOf returns the key of watched.slots for the program of a role.
func pointOf(r code.Role) point {
	return point{[code.Roles]node.EventKind{node.EventDescheduled, node.EventScheduled, node.EventUnblocked}[r], 0}
}

func codesOf(list []*listener) []*code.Listener {
	all := make([]*code.Listener, len(list))
	for i, l := range list {
		all[i] = &l.code
	}
	return all
}

// noteWaiting records which threads of a process are waiting when a listener for the end of waiting begins. It
// does not change the state of a thread that a program has recorded already.
func (e *events) noteWaiting(on *watched, list []*listener) {
	if !slices.ContainsFunc(list, func(l *listener) bool { return l.point.kind == node.EventUnblocked }) {
		return
	}
	tids, err := proc.Threads(on.proc.PID)
	if err != nil {
		return // the process has ended
	}
	row := make([]byte, code.SizeOfState)
	row[code.StateNow] = code.IsWaiting
	for _, tid := range tids {
		if waits(tid) {
			_ = e.states.Update(uint32(tid), row, ebpf.UpdateNoExist) // if the table is full, the thread's first event is missed
		}
	}
}

// waits reports whether a thread is in state S or D.
func waits(tid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return strings.HasPrefix(rest, " S") || strings.HasPrefix(rest, " D")
}

// forgetEnded deletes ended threads from the table of interrupted calls.
func (e *events) forgetEnded() {
	for id, w := range e.watched {
		if n := w.record.interrupted(); n.Load() > 0 {
			n.Add(-e.forgetEndedOf(id))
		}
	}
}

// forgetEndedOf deletes the ended threads of a process from the table of interrupted calls, and returns
// their number.
func (e *events) forgetEndedOf(id omis.ProcID) (n int64) {
	var k code.Key
	var ended []code.Key
	row := make([]byte, code.SizeOfBroken)
	for err := e.interrupted.NextKey(nil, &k); err == nil; err = e.interrupted.NextKey(k, &k) {
		if e.interrupted.Lookup(k, row) == nil && binary.LittleEndian.Uint64(row[code.BrokenPID:]) == uint64(id.PID) && !isAlive(id.PID, k.Thread()) {
			ended = append(ended, k)
		}
	}
	for _, k := range ended {
		if e.interrupted.Delete(k) == nil {
			n++
		}
	}
	return n
}
