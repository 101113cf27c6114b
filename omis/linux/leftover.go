//go:build linux && amd64

package linux

import (
	"os"

	"mirador/omis"
	"mirador/omis/linux/proc"
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

// tidyUp takes out what a monitor left standing that was killed together with
// its warden. Nobody needs to be traced for it. Until then the process passes
// its breakpoints by itself, at the cost of a signal each.
func (n *Node) tidyUp(p omis.ProcID) {
	if len(leftovers(p.PID)) == 0 {
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
	for _, e := range leftovers(o.proc.PID) {
		restore(memory, &breakpoint{addr: e.Addr, original: e.Original})
	}
}

// leftovers lists the breakpoints that stand in a process.
func leftovers(pid int) []resident.Entry {
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil
	}
	memory, err := os.Open(memoryPath(pid))
	if err != nil {
		return nil
	}
	defer memory.Close()
	_, s, _ := homeIn(memory, maps)
	var standing []resident.Entry
	for _, e := range s.Entries {
		var now [1]byte
		if _, err := memory.ReadAt(now[:], int64(e.Addr)); err == nil && now[0] == int3 {
			standing = append(standing, e)
		}
	}
	return standing
}
