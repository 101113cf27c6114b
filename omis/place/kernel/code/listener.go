//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"mirador/omis/host/calls"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Events has the tables of programs at tracepoints.
type Events struct {
	Tables
	Records
	Returning   *ebpf.Map // keys of the threads that are in rt_sigreturn
	Interrupted *ebpf.Map // Key of a thread -> its interrupted system calls
	States      *ebpf.Map // number of a thread -> what it was doing
}

// Listener is a program at an event of the kernel.
type Listener struct {
	Kind   node.EventKind
	Steps  []Step
	Only   []Thread       // empty: all threads
	File   calls.FileKind // only system calls on files of this kind
	Active Unit           // its first word is 1 while hits count
}

// AtCall assembles the program of a process for a system call, which runs all of these listeners.
func (e *Events) AtCall(list []*Listener) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(told, asm.R1), asm.StoreImm(asm.RFP, stackZero, 0, asm.Word)}
	shapes := make([]*Shape, len(list))
	for i, l := range list {
		shapes[i] = ShapeOf(l.Steps, 0, node.Always)
	}
	code = append(code, (&assembler{Tables: &e.Tables}).hit(shapes...)...)
	code = append(code, e.Layout.thread(end)...)
	for i, l := range list {
		code = append(code, e.part(l, fmt.Sprint("listener", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// part assembles the code of one listener.
func (e *Events) part(l *Listener, name string) asm.Instructions {
	a := &assembler{Tables: &e.Tables, fixed: l.Steps, event: true, timed: IsScheduling(l.Kind), loads: loadsOf(l.Steps), from: sourcesOf(l.Steps)}
	over := name + "over"
	code := asm.Instructions{
		e.Slab.at(asm.R1, l.Active),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, over),
	}
	code = append(code, l.filter(name, over)...)
	code = append(code, e.Layout.onFile(l.File, name, over)...)
	if slices.ContainsFunc(a.loads, func(l program.Load) bool { return l.From == program.FromMessages }) {
		code = append(code, sumMessages(name)...)
	}
	for i, s := range l.Steps {
		code = append(code, a.step(s.Do, clockOf(s.Op), s.Kind, i, fmt.Sprint(name, "step", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(over))
}

// filter jumps to over unless the thread is one that the listener is limited to. Its labels begin with
// name.
func (l *Listener) filter(name, over string) asm.Instructions {
	if len(l.Only) == 0 {
		return nil
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.Div.Imm(asm.R2, NsPerTick),
	}
	for i, t := range l.Only {
		other := fmt.Sprint(name, "thread", i)
		code = append(code,
			asm.JNE.Imm(asm.R1, int32(t.TID), other),
			asm.LoadImm(asm.R3, int64(t.Ticks), asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R3, name+"meant"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	return append(code, asm.Ja.Label(over), asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"meant"))
}
