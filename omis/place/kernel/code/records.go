//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The kernel's own events happen in all processes. Two tables say which processes are observed: an index
// leads from the lower bits of the process id to a record. For all other processes an event costs only a
// few loads.

// A record: offsets.
const (
	RecordFrom        = 0 // the process started at this time or later
	RecordTo          = 8 // and before this time, both in nanoseconds since boot
	RecordPID         = 16
	RecordInterrupted = 24 // how many of its threads are in the table of interrupted calls
	RecordStarted     = 32 // slots of programs, by the number of the system call
	RecordEnded       = RecordStarted + 2*callNumbers
	RecordRoles       = RecordEnded + 2*callNumbers // slots of programs, by Role
	RecordSize        = RecordRoles + 8
)

// Numbers of system calls. OtherCalls stands for all calls that the table of names does not have, and for
// all calls of 32-bit code, whose numbers have other meanings.
const (
	OtherCalls  = 512
	callNumbers = OtherCalls + 4
)

// IndexSize is the number of entries of the index.
const IndexSize = 1 << 16

// Records has the index and the table of records.
type Records struct {
	Index, List *ebpf.Map
}

// Registers of root programs: the arguments of the tracepoint, the record, a number, a task.
const (
	told   = asm.R6
	found  = asm.R7
	number = asm.R8
	whose  = asm.R9
)

// stackIndex is the stack offset of the number of the record.
const stackIndex = -32

// find puts the address of the record of a task's process into the register found. It jumps to out if the
// process has no record. In a nested pid namespace, find works for the current task only.
func (r *Records) find(l *Layout, task asm.Register, out string) asm.Instructions {
	var code asm.Instructions
	if l.nested {
		code = append(l.process(out), asm.Mov.Reg(number, asm.R0))
	} else {
		code = asm.Instructions{asm.LoadMem(number, task, l.tgid, asm.Word)}
	}
	return append(code,
		asm.Mov.Reg(asm.R1, number),
		asm.And.Imm(asm.R1, IndexSize-1), asm.LSh.Imm(asm.R1, 1),
		asm.LoadMapValue(asm.R2, r.Index.FD(), 0),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.LoadMem(asm.R1, asm.R2, 0, asm.Half),
		asm.JEq.Imm(asm.R1, 0, out),
		asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, r.List.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackIndex),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.Mov.Reg(found, asm.R0),
		asm.LoadMem(asm.R1, found, RecordPID, asm.Word),
		asm.JNE.Reg(asm.R1, number, out),
		asm.LoadMem(asm.R1, task, l.leader, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, l.started, asm.DWord),
		asm.LoadMem(asm.R2, found, RecordFrom, asm.DWord),
		asm.JLT.Reg(asm.R1, asm.R2, out),
		asm.LoadMem(asm.R2, found, RecordTo, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R2, out))
}
