//go:build linux && amd64

package linux

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// The place to which a signal handler returns is in a frame on the stack that the kernel made
// (struct rt_sigframe): first the address of the code that ends the handler, then a ucontext.
const (
	frameAltStack = 24 // where the alternate stack begins, and its flags and size
	frameAltSize  = 40
	frameRIP      = 176 // where the thread was interrupted
)

// Limits of what is searched for such frames. A larger mapping is not a stack but a heap with
// stacks in it, for example those of goroutines, whose signals have small stacks.
const (
	mostStack   = 16 << 20
	signalStack = 256 << 10
)

// interruption is where a signal has interrupted a thread. If that is in a copy of an instruction, pc is where the
// thread comes out, and copied is set.
type interruption struct {
	pc     uint64
	at     uint64 // where the handler's frame has it
	copied bool
}

// Held: see patch.Process.
func (p patched) Held(pick func(uint64) bool) (list []uint64, err error) {
	err = p.interruptions(pick, func(i interruption) error {
		list = append(list, i.pc)
		return nil
	})
	return list, err
}

// Redirect: see patch.Process.
func (p patched) Redirect(to map[uint64]uint64) error {
	picked := func(pc uint64) bool { return to[pc] != 0 }
	return p.interruptions(picked, func(i interruption) error {
		if i.copied {
			return nil // a breakpoint has been hit before the copy
		}
		_, err := p.o.space.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, to[i.pc]), int64(i.at))
		return err
	})
}

// interruptions calls a function for each place where signals have interrupted threads and that pick selects.
func (p patched) interruptions(pick func(uint64) bool, visit func(interruption) error) error {
	mapped, err := proc.Maps(p.o.proc.PID)
	if err != nil {
		return err
	}
	for _, t := range p.o.tracer.threads {
		var regs ptrace.Regs
		if t.kind > vforked || ptrace.GetRegs(t.tid, &regs) != nil {
			continue
		}
		list, err := p.o.patcher.interruptedAt(regs.Rsp, mapped, pick)
		if err != nil {
			return err
		}
		for _, i := range list {
			if err := visit(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// interruptedAt lists those places that a function picks among the ones where signals have interrupted a stopped
// thread.
func (p *patcher) interruptedAt(sp uint64, mapped proc.Mappings, pick func(uint64) bool) (list []interruption, err error) {
	const redZone, word = 128, 8
	begin := (sp - redZone) &^ (word - 1)
	m, ok := mapped.At(sp)
	if !ok {
		return nil, fmt.Errorf("the stack of a thread cannot be read")
	}
	size := m.End - begin
	if size > mostStack {
		size = signalStack
	}
	stack := make([]byte, size)
	n, _ := p.o.space.memory.ReadAt(stack, int64(begin))
	for at := frameRIP &^ (word - 1); at+word <= n; at += word {
		i := interruption{pc: binary.LittleEndian.Uint64(stack[at:]), at: begin + uint64(at)}
		if p.o.space.inArena(i.pc) {
			i.pc, i.copied = p.o.space.leads(i.pc), true
		}
		if pick(i.pc) && p.isFrame(stack[at-frameRIP:], i.at-frameRIP, sp) {
			list = append(list, i)
		}
	}
	return list, nil
}

// isFrame reports whether bytes at an address are the frame of a handler that has not ended. A
// handler on an alternate stack has ended when the stack pointer is not in that stack.
func (p *patcher) isFrame(frame []byte, addr, sp uint64) bool {
	le := binary.LittleEndian
	if !p.endsHandlers(le.Uint64(frame)) {
		return false
	}
	begin, size := le.Uint64(frame[frameAltStack:]), le.Uint64(frame[frameAltSize:])
	return addr-begin >= size || sp-begin < size
}

// endsHandlers reports whether code makes the system call that ends a signal handler.
func (p *patcher) endsHandlers(addr uint64) bool {
	var code [16]byte
	n, _ := p.o.space.memory.ReadAt(code[:], int64(addr))
	// mov $15, %eax; syscall, in any encoding
	return bytes.Contains(code[:n], []byte{15, 0, 0, 0, 0x0f, 0x05})
}
