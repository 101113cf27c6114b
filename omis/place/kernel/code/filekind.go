//go:build linux && amd64

package code

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis/host/calls"
	"mirador/omis/node"
	"mirador/omis/program"
)

// A watch may be limited to system calls on one kind of file, as in write@socket. The program takes the
// first argument of the call as a descriptor, and follows it through the tables of the process to the inode,
// whose mode has the type of the file. At the end of a call the registers still contain its arguments; if
// another thread has closed the descriptor meanwhile, the call does not count.

// filePath has the offsets of the members on the way from task_struct to the mode of an inode.
type filePath struct {
	why                         string // why they are not known, "" if they are
	files, table, array, length int16
	inode, mode                 int16
}

func findFilePath(types *btf.Spec) filePath {
	var p filePath
	for _, m := range []struct {
		to       *int16
		of, name string
	}{
		{&p.files, "task_struct", "files"}, {&p.table, "files_struct", "fdt"}, {&p.array, "fdtable", "fd"},
		{&p.length, "fdtable", "max_fds"}, {&p.inode, "file", "f_inode"}, {&p.mode, "inode", "i_mode"},
	} {
		at, ok := offsetIn(types, m.of, m.name)
		if !ok {
			return filePath{why: fmt.Sprintf("%s of this kernel has no %s in reach", m.of, m.name)}
		}
		*m.to = at
	}
	return p
}

// CanSeeFiles reports why a program cannot limit a watch to system calls on a kind of file, if the watch
// requires it.
func (l *Layout) CanSeeFiles(w *node.Watch) error {
	if _, kind := calls.Split(w.Name); kind == calls.AnyFile || kind == calls.OnLock || l.files.why == "" {
		return nil
	}
	return &program.Refusal{Why: "what a descriptor is cannot be told: " + l.files.why}
}

// Stack offsets while a descriptor is followed. They overlap those of spots, which programs at events do
// not have.
const (
	stackDescriptor = stackOld
	stackFollowed   = stackNew
	stackTable      = stackSpot
)

// Arguments of a system call in pt_regs.
const (
	regFirst  = 14 * 8
	regSecond = 13 * 8
	regThird  = 12 * 8
)

// onFile jumps to over unless the first argument of the system call is the descriptor of a file of a kind.
// Its label begins with name.
func (l *Layout) onFile(kind calls.FileKind, name, over string) asm.Instructions {
	switch kind {
	case calls.AnyFile:
		return nil
	case calls.OnLock:
		return onLock(name, over)
	}
	p := &l.files
	// follow loads a member into R3, from the struct whose address is in R3.
	follow := func(offset int16, bytes int32, size asm.Size) asm.Instructions {
		return asm.Instructions{
			asm.Add.Imm(asm.R3, int32(offset)),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, stackFollowed, asm.R1, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, stackFollowed),
			asm.Mov.Imm(asm.R2, bytes),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, over),
			asm.LoadMem(asm.R3, asm.RFP, stackFollowed, size),
		}
	}
	code := asm.Instructions{
		argument(asm.R2, 0),
		asm.LoadMem(asm.R3, asm.R2, regFirst, asm.DWord),
		asm.Mov.Reg32(asm.R3, asm.R3), // a descriptor is an int
		asm.StoreMem(asm.RFP, stackDescriptor, asm.R3, asm.DWord),
		asm.FnGetCurrentTaskBtf.Call(),
		asm.Mov.Reg(asm.R3, asm.R0),
	}
	code = append(code, follow(p.files, 8, asm.DWord)...)
	code = append(code, asm.JEq.Imm(asm.R3, 0, over))
	code = append(code, follow(p.table, 8, asm.DWord)...)
	code = append(code, asm.StoreMem(asm.RFP, stackTable, asm.R3, asm.DWord))
	code = append(code, follow(p.length, 4, asm.Word)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackDescriptor, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R3, over),
		asm.LoadMem(asm.R3, asm.RFP, stackTable, asm.DWord))
	code = append(code, follow(p.array, 8, asm.DWord)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackDescriptor, asm.DWord),
		asm.LSh.Imm(asm.R1, 3),
		asm.Add.Reg(asm.R3, asm.R1))
	code = append(code, follow(0, 8, asm.DWord)...)
	code = append(code, asm.JEq.Imm(asm.R3, 0, over)) // the descriptor is closed
	code = append(code, follow(p.inode, 8, asm.DWord)...)
	code = append(code, follow(p.mode, 2, asm.Half)...)
	code = append(code, asm.And.Imm(asm.R3, calls.TypeMask))
	for _, t := range kind.Types() {
		code = append(code, asm.JEq.Imm(asm.R3, int32(t), name+"file"))
	}
	return append(code, asm.Ja.Label(over), asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"file"))
}

// onLock jumps to over unless the system call futex waits for a lock, as calls.WaitsForLock does.
func onLock(name, over string) asm.Instructions {
	waits, locks := name+"waits", name+"locks"
	return asm.Instructions{
		argument(asm.R2, 0),
		asm.LoadMem(asm.R3, asm.R2, regSecond, asm.DWord),
		asm.And.Imm(asm.R3, calls.CommandOfFutex),
		asm.JEq.Imm(asm.R3, calls.FutexLockPI, locks),
		asm.JEq.Imm(asm.R3, calls.FutexLockPI2, locks),
		asm.JEq.Imm(asm.R3, calls.FutexWait, waits),
		asm.JNE.Imm(asm.R3, calls.FutexWaitBits, over),
		asm.LoadMem(asm.R3, asm.R2, regThird, asm.DWord).WithSymbol(waits),
		asm.Mov.Reg32(asm.R3, asm.R3),
		asm.JNE.Imm(asm.R3, calls.Contended, over),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(locks),
	}
}
