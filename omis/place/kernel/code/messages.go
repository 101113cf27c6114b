//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf/asm"

	"mirador/omis/host/calls"
)

// Stack offsets while the messages of a system call are added up.
const (
	stackMessageSum = -176
	stackMessageAt  = -184 // the address of the length of the next message
	stackMessage    = -192 // its length
)

// sumMessages stores how many bytes the messages of sendmmsg or recvmmsg had: see calls.HasMessages. It is for
// the end of a call, and uses the registers of rows. The kernel has just written the lengths, so that they are
// in memory. Its labels begin with name.
func sumMessages(name string) asm.Instructions {
	next, enough, all := name+"message", name+"enough", name+"messages"
	at, number := rowAt, kept
	return asm.Instructions{
		asm.Mov.Imm(at, 0),
		asm.StoreMem(asm.RFP, stackMessageSum, at, asm.DWord),
		argument(number, 1),
		asm.JSLE.Imm(number, 0, all),
		asm.JLE.Imm(number, calls.MostMessages, enough),
		asm.Mov.Imm(number, calls.MostMessages),
		argument(asm.R2, 0).WithSymbol(enough),
		asm.LoadMem(asm.R3, asm.R2, regSecond, asm.DWord),
		asm.Add.Imm(asm.R3, calls.LengthAt),
		asm.StoreMem(asm.RFP, stackMessageAt, asm.R3, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.RFP).WithSymbol(next),
		asm.Add.Imm(asm.R1, stackMessage),
		asm.Mov.Imm(asm.R2, 4),
		asm.LoadMem(asm.R3, asm.RFP, stackMessageAt, asm.DWord),
		asm.FnProbeReadUser.Call(),
		asm.JNE.Imm(asm.R0, 0, all),
		asm.LoadMem(asm.R1, asm.RFP, stackMessage, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, stackMessageSum, asm.DWord),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.StoreMem(asm.RFP, stackMessageSum, asm.R2, asm.DWord),
		asm.LoadMem(asm.R3, asm.RFP, stackMessageAt, asm.DWord),
		asm.Add.Imm(asm.R3, calls.SizeOfMessage),
		asm.StoreMem(asm.RFP, stackMessageAt, asm.R3, asm.DWord),
		asm.Add.Imm(at, 1),
		asm.JLT.Reg(at, number, next),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(all),
	}
}
