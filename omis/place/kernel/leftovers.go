//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// leftovers are stores and programs of a former monitor. They continue to work until a request adopts
// them, or Placer.Settle removes them. memory.mu guards them.
type leftovers struct {
	stores    map[*store]string // with their keys
	placed    map[where][]*placed
	listeners []*listener
	orphans   []program.Orphan // what was removed when the placer was opened
	unmended  error            // why uprobes of killed registrars could not be removed
}

// where is an address of a process.
type where struct {
	proc omis.ProcID
	addr uint64
}

// adoptStore takes the store of a key, nil if there is none.
func (l *leftovers) adoptStore(id omis.ProcID, kind program.StoreKind, key string) *store {
	for s, name := range l.stores {
		if name == key && s.target.proc == id && s.pool.Form.Kind == kind {
			delete(l.stores, s)
			return s
		}
	}
	return nil
}

// adopt takes a program at an address that does the same as a requested one, nil if there is none.
func (l *leftovers) adopt(what *program.Placing, steps []code.Step, only []code.Thread) *placed {
	if !lasts(what.Program) {
		return nil
	}
	for _, pl := range l.placed[where{what.Watch.Proc, what.Watch.Addr}] {
		if !pl.target.isGone() && pl.does(steps, only, what.Watch.When) && pl.isSet() {
			l.remove(pl)
			return pl
		}
	}
	return nil
}

func (l *leftovers) add(pl *placed) {
	at := where{pl.target.proc, pl.site.asked}
	l.placed[at] = append(l.placed[at], pl)
}

func (l *leftovers) remove(pl *placed) {
	at := where{pl.target.proc, pl.site.asked}
	l.placed[at] = slices.DeleteFunc(l.placed[at], func(other *placed) bool { return other == pl })
}

// adoptListener takes a listener that does the same as a requested program, nil if there is none.
func (l *leftovers) adoptListener(what *program.Placing, at point, only []code.Thread, file calls.FileKind) *listener {
	if !lasts(what.Program) {
		return nil
	}
	i := slices.IndexFunc(l.listeners, func(l *listener) bool {
		return l.on.proc == what.Watch.Proc && l.point == at && l.code.File == file && slices.Equal(l.program, what.Program) && slices.Equal(l.code.Only, only)
	})
	if i < 0 {
		return nil
	}
	found := l.listeners[i]
	l.listeners = slices.Delete(l.listeners, i, i+1)
	return found
}

// does reports whether a placed program has these steps, for these threads and under this condition.
func (pl *placed) does(steps []code.Step, only []code.Thread, when node.Condition) bool {
	return pl.shape.String() == code.ShapeOf(steps, len(only), when).String() && pl.uprobes.memory.slab.SpotSays(pl.spot, steps, only)
}

// isSet reports whether the uprobe is in the code of the process.
func (pl *placed) isSet() bool {
	var now [1]byte
	n, err := proc.ReadMemory(pl.target.proc.PID, pl.site.addr, now[:])
	return n == 1 && err == nil && now[0] != pl.site.code[0]
}

// orphan describes a leftover program that no request has adopted.
func (pl *placed) orphan() program.Orphan {
	return program.Orphan{Proc: pl.target.proc, What: fmt.Sprintf("a program at %#x", pl.site.asked)}
}
