//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"fmt"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Go's scheduler interrupts goroutines anywhere: it pushes the address where the goroutine
// continues, and saves the registers below it (runtime.asyncPreempt). Whatever looks like an
// address there is taken for one.

// Limits of what is searched while the program is stopped.
const (
	mostGoroutines = 1 << 18
	mostOfStacks   = 64 << 20 // bytes in all
)

// Parked: see patch.Process.
func (p patched) Parked(where landing.Goroutines, pick func(uint64) bool) (list []uint64, err error) {
	all, err := p.goroutines(where)
	if err != nil {
		return nil, err
	}
	var stack []byte
	left := uint64(mostOfStacks)
	for _, g := range all {
		begin, end, err := p.stackOf(g)
		switch {
		case err != nil:
			return nil, err
		case end-begin > left:
			return nil, fmt.Errorf("the stacks of its %d goroutines are more than the %d MB that are searched while it is stopped", len(all), mostOfStacks>>20)
		}
		left -= end - begin
		if uint64(cap(stack)) < end-begin {
			stack = make([]byte, end-begin)
		}
		stack = stack[:end-begin]
		if _, err := p.read(stack, begin); err != nil {
			return nil, fmt.Errorf("the stack of a goroutine cannot be read: %w", err)
		}
		for at := 0; at+8 <= len(stack); at += 8 {
			if addr := binary.LittleEndian.Uint64(stack[at:]); pick(addr) {
				list = append(list, addr)
			}
		}
	}
	return list, nil
}

// goroutines returns the addresses of all descriptors.
func (p patched) goroutines(where landing.Goroutines) ([]uint64, error) {
	count, err := p.word(where.Count)
	if err != nil {
		return nil, err
	}
	if count > mostGoroutines {
		return nil, fmt.Errorf("it has %d goroutines, and %d are searched while it is stopped", count, mostGoroutines)
	}
	first, err := p.word(where.List)
	if err != nil {
		return nil, err
	}
	bytes := make([]byte, 8*count)
	if _, err := p.read(bytes, first); err != nil {
		return nil, fmt.Errorf("the list of goroutines cannot be read: %w", err)
	}
	list := make([]uint64, count)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(bytes[8*i:])
	}
	return list, nil
}

// stackOf returns the bounds of a goroutine's stack, with which its descriptor begins
// (runtime.g). A goroutine that has ended may have none.
func (p patched) stackOf(g uint64) (begin, end uint64, err error) {
	const (
		least = 1 << 11
		most  = 1 << 30 // unless the program raises the runtime's limit
	)
	var bounds [16]byte
	if _, err := p.read(bounds[:], g); err != nil {
		return 0, 0, fmt.Errorf("a goroutine cannot be read: %w", err)
	}
	begin, end = binary.LittleEndian.Uint64(bounds[:]), binary.LittleEndian.Uint64(bounds[8:])
	if size := end - begin; begin != end && (begin%8 != 0 || size < least || size > most) {
		return 0, 0, fmt.Errorf("a goroutine has a stack from %#x to %#x: this runtime is not known", begin, end)
	}
	return begin, end, nil
}

// goroutineOf returns the goroutine that a stopped thread runs.
func (p *patcher) goroutineOf(r *landing.Runtime, regs *ptrace.Regs) (g node.Goroutine) {
	if r.Unknown != nil {
		return node.Goroutine{Unknown: r.Unknown}
	}
	target := patched{host{p.o}}
	if g.Addr, g.Unknown = target.word(regs.Fs_base + uint64(int64(r.G))); g.Unknown == nil && g.Addr != 0 {
		g.StackEnd, g.Unknown = target.word(g.Addr + landing.StackEnd)
	}
	if g.Unknown != nil {
		g.Addr = 0
	}
	if r.Marks {
		g.Frame = regs.Rax
	}
	return g
}

// read reads memory of the process. Its memory file is open only while something is planted.
func (p patched) read(b []byte, addr uint64) (int, error) {
	if p.o.space.memory == nil {
		return proc.ReadMemory(p.o.proc.PID, addr, b)
	}
	return p.o.space.memory.ReadAt(b, int64(addr))
}

func (p patched) word(addr uint64) (uint64, error) {
	var word [8]byte
	if _, err := p.read(word[:], addr); err != nil {
		return 0, fmt.Errorf("the list of goroutines cannot be read: %w", err)
	}
	return binary.LittleEndian.Uint64(word[:]), nil
}

// CanTime: see program.TimingChecker.
func (n *Node) CanTime(p omis.ProcID, addr uint64, clock program.Clock) error {
	r := n.goPrograms.runtimeAt(p, addr)
	switch {
	case r == nil:
		return nil
	case r.Unknown != nil:
		return omis.Errorf(omis.UnsupportedService, "the function in Go at %#x cannot be timed, because goroutines cannot be distinguished: %v", addr, r.Unknown)
	case clock == program.ClockCPU:
		return program.NoGoroutineCPU()
	case !clock.IsElapsed():
		return program.NoGoroutineClock()
	}
	return nil
}

// runtimeAt returns Go's runtime if the code at an address of a process is Go, else nil.
func (gp *goPrograms) runtimeAt(p omis.ProcID, addr uint64) *landing.Runtime {
	return gp.runtimes(p, []uint64{addr})[0]
}

// isGo reports whether a process runs a program in Go.
func (gp *goPrograms) isGo(p omis.ProcID) bool {
	modules, err := gp.n.Modules(p)
	return err == nil && len(modules) > 0 && gp.runtimeAt(p, modules[0].CodeStart) != nil
}

// runtimes is runtimeAt for many addresses. Nothing is known of the code of a file that cannot
// be read; no patch is possible there either.
func (gp *goPrograms) runtimes(p omis.ProcID, addrs []uint64) []*landing.Runtime {
	list := make([]*landing.Runtime, len(addrs))
	maps, err := proc.Maps(p.PID)
	if err != nil {
		return list
	}
	for i, addr := range addrs {
		if m, ok := maps.At(addr); ok && m.Inode != 0 {
			list[i], _ = gp.n.codes.Runtime(p.PID, m, addr)
		}
	}
	return list
}

// GoCode: see node.Patcher.
func (n *Node) GoCode(p omis.ProcID, addrs []uint64) []node.GoCode {
	list := make([]node.GoCode, len(addrs))
	for i, r := range n.goPrograms.runtimes(p, addrs) {
		if r != nil {
			list[i] = node.GoCode{In: true, G: r.G, StackEnd: landing.StackEnd, Unknown: r.Unknown, Marked: r.Marks}
		}
	}
	return list
}
