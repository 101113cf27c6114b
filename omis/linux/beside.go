//go:build linux && amd64

package linux

import (
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/rendezvous"
)

// Results of Beside.
const (
	noteJump = "threads are held by a jump at the first instruction of the function, and another tool's uprobe there would end the process (serve --prefer sharing has breakpoints hold them)"
	noteLost = "another tool has taken our breakpoint away: its uprobe stood at the same address, and when it left, the kernel wrote the program's instruction there; hits until then were not seen, and the breakpoint stands again"
)

// besidePatience bounds the time for which Beside waits for a busy owner.
const besidePatience = 200 * time.Millisecond

// Beside: see node.Neighbours. The kernel gives no sign of a uprobe that another tool has set
// at the address of a breakpoint: it finds an INT3 there and leaves it. When the tool removes
// its uprobe, the kernel writes the file's byte, which can be detected and repaired.
func (n *Node) Beside(p omis.ProcID, addr uint64) string {
	o := n.owners.of(p)
	if o == nil {
		return n.grounds.wouldJump(p, addr)
	}
	c := &lookBeside{addr: addr}
	a, posted := o.box.ask(c)
	if !posted {
		return ""
	}
	select {
	case <-a.done:
	case <-time.After(besidePatience):
		return "" // the owner still writes c.note
	}
	if !c.watched {
		return n.grounds.wouldJump(p, addr)
	}
	return c.note
}

// lookBeside asks an owner what holds threads at an address.
type lookBeside struct {
	addr    uint64
	watched bool
	note    string
}

func (c *lookBeside) do(o *owner) error {
	if o.meeting.isCrossing(c.addr) {
		c.watched = true
		if o.node.grounds.isFirst(o.proc.PID, c.addr) {
			c.note = noteJump
		}
	} else if o.space != nil && o.space.breakpoints[c.addr] != nil {
		c.watched = true
		if o.space.keepsStanding(o.space.breakpoints[c.addr]) {
			c.note = noteLost
		}
	}
	return nil
}

// isCrossing reports whether a jump holds threads at an address.
func (m *meeting) isCrossing(addr uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.crossings[addr]
	return c != nil && !c.former
}

// keepsStanding writes the INT3 of a breakpoint again if another tool has removed it, and
// reports whether that has ever happened.
func (s *space) keepsStanding(b *breakpoint) (lost bool) {
	var now [1]byte
	if _, err := s.memory.ReadAt(now[:], int64(b.addr)); err == nil && b.standing && now[0] == b.original && b.original != int3 {
		b.lost = true
		_ = s.write(b.addr, []byte{int3}) // it fails only if the program has ended
	}
	return b.lost
}

// isFirst reports whether a function begins at an address.
func (gs *grounds) isFirst(pid int, addr uint64) bool {
	layout, err := gs.n.images.Layout(pid)
	if err != nil {
		return false
	}
	begin, end := layout.Bounds(addr)
	return begin != end && begin == addr
}

// wouldJump returns noteJump if, by the file, a watch would hold threads by a jump at the
// beginning of a function.
func (gs *grounds) wouldJump(p omis.ProcID, addr uint64) string {
	if gs.n.byPtrace || gs.n.sharing || !gs.isFirst(p.PID, addr) {
		return ""
	}
	maps, err := proc.Maps(p.PID)
	if err != nil {
		return ""
	}
	layout, err := gs.n.images.Layout(p.PID)
	m, ok := maps.At(addr)
	if err != nil || !ok || m.Inode == 0 {
		return ""
	}
	begin, end := layout.Bounds(addr)
	module, err := gs.n.codes.Of(p.PID, m)
	if err != nil || module.Go {
		return ""
	}
	plan, err := rendezvous.Survey(rendezvous.Function{Start: begin, Code: module.Code(begin-m.Start, end-m.Start)}, addr)
	if at := addr - m.Start; err != nil || !plan.Whole() && module.Lands(at, at+plan.Length()) {
		return ""
	}
	return noteJump
}
