//go:build linux && amd64

package kernel

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/node"
	"mirador/omis/program"
)

// A system call that is meant only on sockets, as write@socket, is filtered where it begins:
// the program follows its first argument through the descriptors of the process to the inode,
// whose mode says what it is.

// socketPath is where the kernel keeps what descriptors are: offsets in its structs.
type socketPath struct {
	why                         string // they are not known; else empty
	files, table, array, length int16
	inode, mode                 int16
}

func findSocketPath(types *btf.Spec) socketPath {
	var p socketPath
	for _, m := range []struct {
		to       *int16
		of, name string
	}{
		{&p.files, "task_struct", "files"}, {&p.table, "files_struct", "fdt"}, {&p.array, "fdtable", "fd"},
		{&p.length, "fdtable", "max_fds"}, {&p.inode, "file", "f_inode"}, {&p.mode, "inode", "i_mode"},
	} {
		at, ok := offsetIn(types, m.of, m.name)
		if !ok {
			return socketPath{why: fmt.Sprintf("%s of this kernel has no %s in reach", m.of, m.name)}
		}
		*m.to = at
	}
	return p
}

// socketOf reports whether an event means calls on sockets alone, or why it cannot.
func (l *layout) socketOf(w *node.Watch) (bool, error) {
	switch _, socket := calls.Split(w.Name); {
	case !socket:
		return false, nil
	case w.Event != node.EventSysCallStarted:
		return false, omis.Errorf(omis.ParameterError, "%s: that a call is on a socket can be told where it begins, not where it ends", w.Name)
	case l.sockets.why != "":
		return false, &program.Refusal{Why: "what a descriptor is cannot be told: " + l.sockets.why}
	}
	return true, nil
}

// Places of the stack while a descriptor is followed. Programs at events have no links, whose
// places they are otherwise.
const (
	stackDescriptor = stackOld
	stackFollowed   = stackNew
	stackTable      = stackSpot
)

const regFirst = 14 * 8 // of pt_regs: the first argument of a system call

// onSocket goes over unless the first argument of the system call is the descriptor of a socket.
func (l *layout) onSocket(over string) asm.Instructions {
	p := &l.sockets
	// follow reads so many bytes at an offset from the address in R3, into R3.
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
		asm.Mov.Reg32(asm.R3, asm.R3), // it is an int
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
	code = append(code, asm.JEq.Imm(asm.R3, 0, over)) // it is closed
	code = append(code, follow(p.inode, 8, asm.DWord)...)
	code = append(code, follow(p.mode, 2, asm.Half)...)
	return append(code,
		asm.And.Imm(asm.R3, unix.S_IFMT),
		asm.JNE.Imm(asm.R3, unix.S_IFSOCK, over))
}
