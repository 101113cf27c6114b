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

// homeIn returns the home that a monitor has made in a process.
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

// leftover is what a monitor left in a process when it was killed together with its warden, or
// before it could record the removal.
type leftover struct {
	home    resident.Home
	entries []resident.Entry // the whole table
	jumps   *rendezvous.Site
}

func (l leftover) stands() bool {
	return slices.ContainsFunc(l.entries, func(e resident.Entry) bool { return e.Standing }) ||
		l.jumps != nil && len(l.jumps.Standing()) > 0
}

// tidyUp removes what a monitor left. The process is not traced for that. Until then it passes
// the old breakpoints by itself, at the cost of a signal each. This monitor may not have
// planted anything in the process before: the table would make the INT3 of a uprobe look like
// a breakpoint.
func (n *Node) tidyUp(p omis.ProcID) {
	memory, err := os.Open(memoryPath(p.PID))
	if err != nil {
		return
	}
	defer memory.Close()
	if !left(p.PID, memory).stands() {
		return
	}
	_ = n.owners.ask(p, tidyUp{}) // it fails if the process has ended or has another tracer
}

// tidyUp is the owner's task, because the owner knows whether the breakpoints are its own.
type tidyUp struct{}

func (tidyUp) do(o *owner) error {
	if o.space.memory == nil {
		o.removeLeftovers()
	}
	return nil
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
			restore(o.proc.PID, memory, &breakpoint{addr: e.Addr, original: e.Original})
			_, _ = memory.WriteAt([]byte{0}, int64(l.home.Mark(i))) // a write fails only if the program has ended
		}
	}
	if l.jumps != nil {
		l.jumps.Clean(memory)
	}
}

// left returns what a monitor left in a process.
func left(pid int, memory *os.File) (l leftover) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return l
	}
	_ = sanely(func() error { // after an error nothing can be known of it
		home, s, _ := homeIn(memory, maps)
		l.home, l.entries = home, s.Entries
		l.jumps = rendezvous.Adopt(bystander{memory, pid}, maps, rendezvous.Config{})
		return nil
	})
	return l
}

// bystander is a process that is not traced, and makes no system calls for the monitor.
type bystander struct {
	*os.File
	pid int
}

func (b bystander) PID() int { return b.pid }

func (b bystander) Call(uint64, ...uint64) (int64, error) { return 0, unix.ESRCH }
