//go:build linux && amd64

package linux

import (
	"context"
	"encoding/binary"
	"fmt"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// Limits of what is read of goroutines; the process may have written anything there.
const (
	mostListed     = 1 << 16
	mostOfStack    = 64 << 10 // bytes of one goroutine
	mostFrames     = 1 << 18  // of all goroutines
	mostReasonText = 64
)

// States of goroutines (runtime._Gidle and so on), which are the same in all versions of Go
// that have the state preempted. A bit marks goroutines whose stack the garbage collector
// scans.
var goStates = map[uint32]string{1: "runnable", 2: "running", 3: "syscall", 4: "waiting", 8: "copystack", 9: "preempted", 10: "leaked"}

const (
	stateScanned = 0x1000
	stateRunning = 2
	stateSyscall = 3
	stateWaiting = 4
)

// goPrograms reads what the Go runtime keeps in a process. Its methods may be called from
// any goroutine.
type goPrograms struct{ n *Node }

// Goroutines returns the goroutines of a process, with up to depth frames each (0: none). It
// stops the process to read them, and walks their stacks afterwards. For a process that is not
// a Go program the list is empty.
func (n *Node) Goroutines(ctx context.Context, p omis.ProcID, depth int) ([]node.GoroutineInfo, error) {
	where, ok, err := n.goPrograms.scheduler(ctx, p)
	if err != nil || !ok {
		return nil, err
	}
	layout, err := n.images.Layout(p.PID)
	if err != nil {
		return nil, err
	}
	c := &captureGoroutines{where: where, stacks: depth > 0}
	if err := n.owners.ask(p, c); err != nil {
		return nil, err
	}
	list := make([]node.GoroutineInfo, 0, len(c.found))
	reasons := make(map[uint8]string)
	left := mostFrames
	for i := range c.found {
		g := &c.found[i]
		info := g.info
		if g.status == stateWaiting {
			text, known := reasons[g.reason]
			if !known {
				text = n.goPrograms.reason(p, where, g.reason)
				reasons[g.reason] = text
			}
			info.Reason = text
		}
		if len(g.stack) > 0 {
			info.Frames = g.frames(n.stacks.walk(p, &g.capture, layout, min(depth, left, len(g.stack)/8+1)).Frames)
			left -= len(info.Frames)
		}
		list = append(list, info)
	}
	return list, nil
}

// scheduler returns the program's scheduler; ok is false if no module is Go.
func (gp *goPrograms) scheduler(ctx context.Context, p omis.ProcID) (s landing.Scheduler, ok bool, err error) {
	maps, err := proc.Maps(p.PID)
	if err != nil {
		return s, false, err
	}
	for _, m := range maps {
		if !m.Exec || m.Inode == 0 {
			continue
		}
		if s, ok, err = gp.n.codes.Scheduler(ctx, p.PID, m); ok {
			if err != nil {
				err = omis.Errorf(omis.UnsupportedService, "the goroutines of process %d cannot be read: %w", p.PID, err)
			}
			return s, true, err
		}
	}
	return s, false, nil
}

// reason reads why a goroutine waits from the runtime's list of reasons.
func (gp *goPrograms) reason(p omis.ProcID, where landing.Scheduler, number uint8) string {
	const stringSize = 16
	var header [stringSize]byte
	if where.Reasons == 0 {
		return ""
	}
	if _, err := gp.n.ReadMemory(p, where.Reasons+uint64(number)*stringSize, header[:]); err != nil {
		return ""
	}
	text := make([]byte, min(binary.LittleEndian.Uint64(header[8:]), mostReasonText))
	if _, err := gp.n.ReadMemory(p, binary.LittleEndian.Uint64(header[:]), text); err != nil {
		return ""
	}
	for _, b := range text {
		if b < ' ' || b > '~' {
			return "" // the runtime has no such text
		}
	}
	return string(text)
}

// goroutine is what is copied of a goroutine while the process is stopped.
type goroutine struct {
	capture
	info   node.GoroutineInfo
	status uint32
	reason uint8
}

// frames returns the frames up to the first that is not above the one before it, or not in the
// stack.
func (g *goroutine) frames(list []node.Frame) []node.Frame {
	below, end := g.regs.Rsp, g.regs.Rsp+uint64(len(g.stack))
	for i, f := range list {
		if i > 0 && (f.FP <= below || f.FP > end+wordSize) {
			return list[:i]
		}
		below = f.FP
	}
	return list
}

const wordSize = 8

// captureGoroutines stops a process and copies its goroutines.
type captureGoroutines struct {
	where  landing.Scheduler
	stacks bool
	found  []goroutine
}

func (c *captureGoroutines) do(o *owner) (err error) {
	defer o.restIfIdle()
	c.found, err = o.patcher.goroutines(c.where, c.stacks)
	return err
}

// goroutines copies all goroutines except those that have ended or not begun.
func (p *patcher) goroutines(where landing.Scheduler, stacks bool) ([]goroutine, error) {
	if p.o.ended {
		return nil, ended(p.o.proc.PID)
	}
	if err := p.o.tracer.attach(); err != nil {
		return nil, err
	}
	p.o.tracer.freeze(nil)
	defer p.o.tracer.thaw()
	if err := p.o.sameUser(); err != nil {
		return nil, err
	}
	p.o.meeting.comeOut(func(*thread) bool { return true })
	target := patched{host{p.o}}
	all, err := target.goroutines(where.Goroutines)
	if err != nil {
		return nil, err
	}
	if len(all) > mostListed {
		return nil, omis.Errorf(omis.UnsupportedService, "process %d has %d goroutines, and at most %d can be listed", p.o.proc.PID, len(all), mostListed)
	}
	var list []goroutine
	seen := make(map[uint64]bool, len(all))
	left := uint64(mostOfStacks)
	for _, addr := range all {
		if seen[addr] {
			continue
		}
		seen[addr] = true
		g, ok, err := target.goroutine(addr, where)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if stacks {
			left -= target.copyStack(&g, addr, left)
		}
		list = append(list, g)
	}
	return list, nil
}

// goroutine reads a descriptor; ok is false if the goroutine has ended or not begun. Its
// registers are those with which it continues, or those of the thread that runs it.
func (p patched) goroutine(addr uint64, where landing.Scheduler) (g goroutine, ok bool, err error) {
	b := make([]byte, where.Size)
	if _, err := p.read(b, addr); err != nil {
		return g, false, fmt.Errorf("a goroutine cannot be read: %w", err)
	}
	word := func(at uint64) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	g.status = uint32(word(where.Status)) &^ stateScanned
	if g.info.State, ok = goStates[g.status]; !ok {
		return g, false, nil
	}
	g.info.ID, g.reason = word(where.ID), b[where.Reason]
	g.regs.Rip, g.regs.Rsp, g.regs.Rbp = word(where.PC), word(where.SP), word(where.BP)
	switch g.status {
	case stateSyscall:
		g.regs.Rip, g.regs.Rsp = word(where.CallPC), word(where.CallSP)
		g.regs.Rbp = 0
		if where.CallBP != where.CallPC {
			g.regs.Rbp = word(where.CallBP)
		}
		g.info.TID = p.tidOf(word(where.Thread), where)
	case stateRunning:
		g.info.TID = p.tidOf(word(where.Thread), where)
		var regs ptrace.Regs
		t := p.o.tracer.threads[g.info.TID]
		if t == nil || !t.stopped() || ptrace.GetRegs(t.tid, &regs) != nil {
			break
		}
		// A thread that executes the scheduler for its goroutine runs another one then, and
		// the goroutine's registers are saved.
		if current, err := p.word(regs.Fs_base + uint64(int64(where.G))); err == nil && current == addr {
			g.regs = regs
			g.regs.Rip = p.o.space.inPlace(regs.Rip)
		}
	}
	return g, true, nil
}

// tidOf returns the number of the thread that runs a goroutine, 0 if it is none of the
// process.
func (p patched) tidOf(m uint64, where landing.Scheduler) int {
	tid, err := p.word(m + where.TID)
	if err != nil || tid > 1<<31 || p.o.tracer.threads[int(tid)] == nil {
		return 0
	}
	return int(tid)
}

// copyStack copies a goroutine's stack, beginning at its stack pointer, but no more than the
// given number of bytes (most). It returns the number of bytes copied, 0 if the stack pointer
// is outside the stack.
func (p patched) copyStack(g *goroutine, addr, most uint64) uint64 {
	begin, end, err := p.stackOf(addr)
	sp := g.regs.Rsp
	if err != nil || sp < begin || sp >= end {
		return 0
	}
	g.stack = make([]byte, min(end-sp, mostOfStack, most))
	n, _ := p.read(g.stack, sp)
	g.stack = g.stack[:n]
	return uint64(n)
}
