//go:build linux && amd64

package linux

import (
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/proc"
	"mirador/omis/linux/rendezvous"
	"mirador/omis/linux/resident"
)

// homeIn looks for the home that a monitor has made in a process.
func homeIn(memory *os.File, maps proc.Mappings) (resident.Home, resident.State, bool) {
	for _, m := range maps {
		if m.Inode != 0 || m.Write || !m.Exec || m.End-m.Start < resident.ArenaSize {
			continue
		}
		image := make([]byte, resident.ArenaSize)
		if _, err := memory.ReadAt(image, int64(m.Start)); err != nil {
			continue
		}
		home := resident.Home(m.Start)
		s, err := home.Parse(image)
		if err == nil && len(s.Arenas) > 0 && s.Arenas[0] == m.Start {
			return home, s, true
		}
	}
	return 0, resident.State{}, false
}

// leftover is what a monitor left standing that was killed together with its
// warden.
type leftover struct {
	entries []resident.Entry
	jumps   *rendezvous.Site
}

func (l leftover) stands() bool {
	return len(l.entries) > 0 || l.jumps != nil && len(l.jumps.Standing()) > 0
}

// tidyUp takes out what a monitor left. Nobody needs to be traced for it. Until
// then the process passes its breakpoints by itself, at the cost of a signal each.
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
	_ = n.ask(p, c, c.answer) // the process has ended, or is traced by somebody
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
	for _, e := range l.entries {
		restore(memory, &breakpoint{addr: e.Addr, original: e.Original})
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
	_, s, _ := homeIn(memory, maps)
	for _, e := range s.Entries {
		if !e.Standing {
			continue
		}
		var now [1]byte
		if _, err := memory.ReadAt(now[:], int64(e.Addr)); err == nil && now[0] == int3 {
			l.entries = append(l.entries, e)
		}
	}
	l.jumps = rendezvous.Adopt(bystander{memory, pid}, maps, rendezvous.Config{})
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
