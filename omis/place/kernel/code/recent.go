//go:build linux && amd64

package code

import "github.com/cilium/ebpf/asm"

// To search the index takes longer than everything else that a program does to count. So a small table,
// indexed by a hash of thread and store, has the number of the row that a thread found last. Threads with the
// same hash overwrite each other's entries. The program compares the owner in the row with the thread.

// recentNumbers is the number of entries of the table.
const recentNumbers = 1 << 12

// recentAt puts the address of the entry for the current thread and store into R1.
func recentAt(p *Pool) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.RFP, stackCell, asm.Word),
		asm.Mul.Imm(asm.R2, 61), // a prime: both stores and threads have consecutive numbers
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, recentNumbers-1), asm.LSh.Imm(asm.R2, 2),
		asm.LoadMapValue(asm.R1, p.Recent.FD(), 0),
		asm.Add.Reg(asm.R1, asm.R2),
	}
}

// findRow puts the address of the current thread's row into rowAt. It jumps to none if the thread has no
// row, and to over if the row cannot be reached.
func (a *assembler) findRow(p *Pool, name, none, over string) asm.Instructions {
	search, same := name+"search", name+"same"
	code := append(recentAt(p),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.StoreMem(asm.RFP, stackRow, asm.R1, asm.Word))
	code = append(code, locate(p, search)...)
	code = append(code,
		asm.LoadMem(asm.R1, rowAt, RowOwner, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackTID, asm.DWord), // the upper half is the number of the store
		asm.JNE.Reg(asm.R1, asm.R2, search),
		asm.LoadMem(asm.R1, rowAt, RowStarted, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, same),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(search))
	code = append(code, find(p)...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, none),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.RFP, stackRow, asm.R1, asm.Word))
	code = append(code, locate(p, over)...)
	code = append(code, recentAt(p)...)
	return append(code,
		asm.LoadMem(asm.R2, asm.RFP, stackRow, asm.Word),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(same))
}
