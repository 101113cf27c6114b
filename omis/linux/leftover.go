//go:build linux && amd64

package linux

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/rendezvous"
	"mirador/omis/linux/resident"
)

// homeIn looks for the home that a monitor has made in a process.
func homeIn(memory *os.File, maps proc.Mappings) (resident.Home, resident.State, bool) {
	for _, m := range maps {
		if m.Inode != 0 || m.Write || !m.Exec || m.End-m.Start < resident.ArenaSize {
			continue
		}
		home := resident.Home(m.Start)
		if !home.IsHere(memory) {
			continue
		}
		image := make([]byte, resident.ArenaSize)
		if _, err := memory.ReadAt(image, int64(m.Start)); err != nil {
			continue
		}
		s, err := home.Parse(image)
		if err == nil && len(s.Arenas) > 0 && s.Arenas[0] == m.Start {
			return home, s, true
		}
	}
	return 0, resident.State{}, false
}

// leftover is what a monitor left standing that was killed together with its
// warden, or before it could say that it does not stand any more.
type leftover struct {
	home    resident.Home
	entries []resident.Entry // the whole table
	jumps   *rendezvous.Site
}

func (l leftover) stands() bool {
	return slices.ContainsFunc(l.entries, func(e resident.Entry) bool { return e.Standing }) ||
		l.jumps != nil && len(l.jumps.Standing()) > 0
}

// tidyUp takes out what a monitor left. Nobody needs to be traced for it. Until
// then the process passes its breakpoints by itself, at the cost of a signal each.
// Nothing of ours may stand in the process before: a uprobe's INT3 where the table says
// that a breakpoint stands would be taken for that.
func (n *Node) tidyUp(p omis.ProcID) {
	memory, err := os.Open(memoryPath(p.PID))
	if err != nil {
		return
	}
	defer memory.Close()
	if !left(p.PID, memory).stands() {
		return
	}
	c := tidyUp{newAnswer()}
	_ = n.owners.ask(p, c, c.answer) // the process has ended, or is traced by somebody
}

// tidyUp is asked of the owner, who knows whether they are its own.
type tidyUp struct{ *answer }

func (c tidyUp) do(o *owner) {
	if o.space.memory == nil {
		o.removeLeftovers()
	}
	c.give(nil)
}

func (o *owner) removeLeftovers() {
	memory, err := openMemory(o.proc.PID)
	if err != nil {
		return
	}
	defer memory.Close()
	l := left(o.proc.PID, memory)
	for i, e := range l.entries {
		if e.Standing {
			restore(memory, &breakpoint{addr: e.Addr, original: e.Original})
			_, _ = memory.WriteAt([]byte{0}, int64(l.home.Mark(i))) // what cannot be written has ended
		}
	}
	if l.jumps != nil {
		l.jumps.Clean(memory)
	}
}

// left finds what stands in a process.
func left(pid int, memory *os.File) (l leftover) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return l
	}
	_ = sanely(func() error { // nothing of it stands then, as far as anybody can know
		home, s, _ := homeIn(memory, maps)
		l.home, l.entries = home, s.Entries
		l.jumps = rendezvous.Adopt(bystander{memory, pid}, maps, rendezvous.Config{})
		return nil
	})
	return l
}

// bystander is a process in nobody's hands, which will not be asked for system
// calls.
type bystander struct {
	*os.File
	pid int
}

func (b bystander) PID() int { return b.pid }

func (b bystander) Call(uint64, ...uint64) (int64, error) { return 0, unix.ESRCH }
