//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// AtExec assembles the program that sets the first word of a process's unit when the process executes another
// program. If the new program maps the same file, the kernel sets the uprobes in it again; their hits must not
// count. running has the units by process id.
func (t *Tables) AtExec(running *ebpf.Map) asm.Instructions {
	code := t.Layout.process(end)
	code = append(code, asm.StoreMem(asm.RFP, stackTID, asm.R0, asm.Word))
	code = append(code, lookup(running, stackTID)...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, end),
		asm.LoadMem(asm.R2, asm.R0, 0, asm.Word))
	code = append(code, t.Slab.address(asm.R1, asm.R2, end)...)
	return append(code,
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}
