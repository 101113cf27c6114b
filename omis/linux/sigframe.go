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

// Held: see patch.Process.
func (p patched) Held(pick func(uint64) bool) (list []uint64, err error) {
	mapped, err := proc.Maps(p.o.proc.PID)
	if err != nil {
		return nil, err
	}
	for _, t := range p.o.tracer.threads {
		var regs ptrace.Regs
		if t.kind > vforked || ptrace.GetRegs(t.tid, &regs) != nil {
			continue
		}
		held, err := p.o.patcher.interruptedAt(regs.Rsp, mapped, pick)
		if err != nil {
			return nil, err
		}
		list = append(list, held...)
	}
	return list, nil
}

// interruptedAt lists those addresses that a function picks among the ones at which signals
// have interrupted a stopped thread. It replaces an address in a copy by the one where the
// thread comes out.
func (p *patcher) interruptedAt(sp uint64, mapped proc.Mappings, pick func(uint64) bool) (list []uint64, err error) {
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
		pc := binary.LittleEndian.Uint64(stack[at:])
		if p.o.space.inArena(pc) {
			pc = p.o.space.leads(pc)
		}
		if pick(pc) && p.isFrame(stack[at-frameRIP:], begin+uint64(at-frameRIP), sp) {
			list = append(list, pc)
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
