//go:build linux && amd64

package linux

import (
	"slices"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
	"mirador/omis/linux/unwind"
	"mirador/omis/node"
)

// maxStack bounds how much of a stack is copied while its thread is stopped. The rest is read
// afterwards; it contains the outermost frames, which change least.
const maxStack = 1 << 20

// capture is the state of a thread at one moment.
type capture struct {
	tid   int
	regs  ptrace.Regs
	stack []byte // from the stack pointer up
	err   error
}

// stackReader reads the stacks of threads. Its methods may be called from any goroutine.
type stackReader struct{ n *Node }

// Backtraces: see node.Node. The stacks are walked after the threads continue.
func (n *Node) Backtraces(p omis.ProcID, tids []int, depth int) ([]node.Backtrace, error) {
	captures, layout, err := n.stacks.captured(p, tids)
	if err != nil {
		return nil, err
	}
	traces := make([]node.Backtrace, len(tids))
	for i := range captures {
		traces[i] = n.stacks.walk(p, &captures[i], layout, depth)
	}
	return traces, nil
}

// captured stops threads together and returns what their backtraces need.
func (sr *stackReader) captured(p omis.ProcID, tids []int) ([]capture, *unwind.Layout, error) {
	layout, err := sr.n.images.Layout(p.PID)
	if err != nil {
		return nil, nil, err
	}
	c := captureThreads{layout, make([]capture, len(tids))}
	for i, tid := range tids {
		c.captures[i].tid = tid
	}
	return c.captures, layout, sr.n.owners.ask(p, c)
}

// captureThreads stops threads and copies what their backtraces need.
type captureThreads struct {
	layout   *unwind.Layout
	captures []capture
}

func (c captureThreads) do(o *owner) error {
	defer o.restIfIdle()
	return o.capture(c.layout, c.captures)
}

func (o *owner) capture(layout *unwind.Layout, captures []capture) error {
	if o.ended {
		return ended(o.proc.PID)
	}
	named := make(map[int]bool)
	tids := make([]int, 0, len(captures))
	for _, c := range captures {
		named[c.tid] = true
		tids = append(tids, c.tid)
	}
	present, err := proc.Threads(o.proc.PID)
	if err != nil {
		return err
	}
	tids = slices.DeleteFunc(tids, func(tid int) bool { return !slices.Contains(present, tid) })
	if _, err := o.tracer.seize(tids); err != nil {
		return err
	}
	among := func(t *thread) bool { return named[t.tid] }
	o.tracer.freeze(among)
	defer o.tracer.thaw()
	if err := o.sameUser(); err != nil {
		return err
	}
	o.meeting.comeOut(among)
	for i := range captures {
		o.copyThread(layout, &captures[i])
	}
	return nil
}

func (o *owner) copyThread(layout *unwind.Layout, c *capture) {
	t := o.tracer.threads[c.tid]
	switch {
	case t == nil || t.kind != member && t.kind != unobserved:
		c.err = noThread(o.proc, c.tid)
		return
	case !t.stopped() || ptrace.GetRegs(t.tid, &c.regs) != nil:
		c.err = omis.Errorf(omis.OSError, "thread %d of process %d cannot be stopped: it waits uninterruptibly in the kernel", c.tid, o.proc.PID)
		return
	}
	c.regs.Rip = o.space.inPlace(c.regs.Rip)
	if end := layout.StackEnd(c.regs.Rsp); end > c.regs.Rsp {
		c.stack = make([]byte, min(end-c.regs.Rsp, maxStack))
		n, _ := proc.ReadMemory(o.proc.PID, c.regs.Rsp, c.stack)
		c.stack = c.stack[:n]
	}
}

// inPlace returns the address in the program that corresponds to an address in a copy or in a
// patch.
func (s *space) inPlace(pc uint64) uint64 {
	if g := s.o.node.grounds.of(s.o.proc); g != nil {
		if at, _, ok := g.site.InPlace(pc); ok {
			return at
		}
	}
	return s.ofCopy(pc)
}

// ofCopy is inPlace for the copies of breakpoints and rendezvous.
func (s *space) ofCopy(pc uint64) uint64 {
	if s.o.meeting.site != nil {
		if at, ok := s.o.meeting.site.InPlace(pc); ok {
			return at
		}
	}
	for _, b := range s.table {
		switch {
		case pc == b.copy:
			return b.addr
		case pc > b.copy && pc < b.copy+resident.SlotSize:
			return b.addr + uint64(b.length)
		}
	}
	return pc
}

// leads returns where a thread at an address comes out in the program: behind the displaced
// instructions, if it is in the copy of a breakpoint or a rendezvous. The thread does not pass
// their beginning again.
func (s *space) leads(pc uint64) uint64 {
	if s.o.meeting.site != nil {
		if to, ok := s.o.meeting.site.Leads(pc); ok {
			return to
		}
	}
	for _, b := range s.table {
		if pc >= b.copy && pc < b.copy+resident.SlotSize {
			return b.addr + uint64(b.length)
		}
	}
	return pc
}

func (sr *stackReader) walk(p omis.ProcID, c *capture, layout *unwind.Layout, depth int) node.Backtrace {
	if c.err != nil {
		return node.Backtrace{Err: c.err}
	}
	frames, err := layout.Backtrace(&c.regs, func(buf []byte, addr uint64) (int, error) {
		if off := addr - c.regs.Rsp; off < uint64(len(c.stack)) && uint64(len(c.stack))-off >= uint64(len(buf)) {
			return copy(buf, c.stack[off:]), nil
		}
		return sr.n.ReadMemory(p, addr, buf)
	}, depth)
	return node.Backtrace{Frames: frames, Err: err}
}
