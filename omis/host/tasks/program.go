//go:build linux

package tasks

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis/host/tracepoint"
)

// Layout of a record of the iterator.
const (
	recordTID         = 0
	recordState       = 4
	recordExit        = 8
	recordPriority    = 12
	recordStart       = 16
	recordRan         = 24
	recordUser        = 32
	recordSystem      = 40
	recordShownUser   = 48
	recordShownSystem = 56
	recordName        = 64
	recordSize        = recordName + nameSize
)

// Stack of a program.
const (
	stackRecord = -max(recordSize, processSize)
	stackPID    = stackRecord - 8 // pointer to a struct pid
)

// member is a member of task_struct, or of a struct in it, with its position in the
// record.
type member struct {
	path     string
	size, to int
}

var members = [...]member{
	{"__state", 4, recordState},
	{"exit_state", 4, recordExit},
	{"static_prio", 4, recordPriority},
	{"start_boottime", 8, recordStart},
	{"se.sum_exec_runtime", 8, recordRan},
	{"utime", 8, recordUser},
	{"stime", 8, recordSystem},
	{"prev_cputime.utime", 8, recordShownUser},
	{"prev_cputime.stime", 8, recordShownSystem},
}

// Arguments of an iterator's program.
const (
	argMeta = 0
	argTask = 8
)

// threadProgram assembles the program that writes one record for each task. Register 6
// holds its arguments, register 7 the task.
func threadProgram(kernel *btf.Spec) (asm.Instructions, error) {
	return assembled(
		begin,
		func() (asm.Instructions, error) { return copies(kernel, asm.R7, "task_struct", members[:]) },
		func() (asm.Instructions, error) {
			return copies(kernel, asm.R7, "task_struct", []member{{"comm", nameSize, recordName}})
		},
		func() (asm.Instructions, error) { return number(kernel) },
		finish(recordSize),
	)
}

// assembled joins parts of a program.
func assembled(parts ...func() (asm.Instructions, error)) (code asm.Instructions, err error) {
	for _, part := range parts {
		next, err := part()
		if err != nil {
			return nil, err
		}
		code = append(code, next...)
	}
	return code, nil
}

func begin() (asm.Instructions, error) {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, argTask, asm.DWord),
		asm.JEq.Imm(asm.R7, 0, "out"), // the call after the last task
	}, nil
}

// copies reads members of the struct at a register into the record. The kernel knows the
// type of the pointer, so the program may read members directly, except for arrays.
func copies(kernel *btf.Spec, from asm.Register, in string, list []member) (code asm.Instructions, err error) {
	for _, m := range list {
		offset, err := find(kernel, in, m.path, m.size)
		if err != nil {
			return nil, err
		}
		to := stackRecord + m.to
		switch m.size {
		case 4, 8:
			size := asm.Word
			if m.size == 8 {
				size = asm.DWord
			}
			code = append(code, asm.LoadMem(asm.R1, from, int16(offset), size), asm.StoreMem(asm.RFP, int16(to), asm.R1, size))
		default:
			code = append(code, asm.Mov.Reg(asm.R3, from))
			code = append(code, read(to, m.size, offset)...)
		}
	}
	return code, nil
}

// finish writes the record to the iterator's file.
func finish(size int32) func() (asm.Instructions, error) {
	return func() (asm.Instructions, error) {
		return asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, argMeta, asm.DWord).WithSymbol("numbered"),
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // its seq_file
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackRecord),
			asm.Mov.Imm(asm.R3, size),
			asm.FnSeqWrite.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
			asm.Return(),
		}, nil
	}
}

// number stores the number of the task in the pid namespace of the reader, which is the
// monitor. The kernel selected the task in this namespace, so it has a number there; it
// may be zero for a task that has just ended.
func number(kernel *btf.Spec) (asm.Instructions, error) {
	var pid, threadPID, level, numbers, nr int32
	for _, m := range []struct {
		in, path string
		size     int
		offset   *int32
	}{
		{"task_struct", "pid", 4, &pid}, {"task_struct", "thread_pid", 8, &threadPID},
		{"pid", "level", 4, &level}, {"pid", "numbers", 0, &numbers}, {"upid", "nr", 4, &nr},
	} {
		var err error
		if *m.offset, err = find(kernel, m.in, m.path, m.size); err != nil {
			return nil, err
		}
	}
	var upid *btf.Struct
	if err := kernel.TypeByName("upid", &upid); err != nil {
		return nil, fmt.Errorf("the kernel does not describe struct upid: %w", err)
	}
	code := asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, int16(threadPID), asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "out"),
		asm.LoadMem(asm.R9, asm.R1, int16(level), asm.Word),
		asm.JNE.Imm(asm.R9, 0, "inner"),
		asm.LoadMem(asm.R1, asm.R7, int16(pid), asm.Word), // the outermost namespace
		asm.StoreMem(asm.RFP, stackRecord+recordTID, asm.R1, asm.Word),
		asm.Ja.Label("numbered"),
		asm.Mov.Reg(asm.R3, asm.R7).WithSymbol("inner"),
	}
	code = append(code, read(stackPID, 8, threadPID)...)
	code = append(code,
		asm.LoadMem(asm.R3, asm.RFP, stackPID, asm.DWord),
		asm.Mul.Imm(asm.R9, int32(upid.Size)),
		asm.Add.Reg(asm.R3, asm.R9))
	return append(code, read(stackRecord+recordTID, 4, numbers+nr)...), nil
}

// read copies memory at R3 onto the stack, or zeros if it is unreadable.
func read(to, size int, offset int32) asm.Instructions {
	return asm.Instructions{
		asm.Add.Imm(asm.R3, offset),
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.FnProbeReadKernel.Call(),
	}
}

// find returns the offset of a member and checks its size, unless size is 0.
func find(kernel *btf.Spec, in, path string, size int) (int32, error) {
	var s *btf.Struct
	if err := kernel.TypeByName(in, &s); err != nil {
		return 0, fmt.Errorf("the kernel does not describe struct %s: %w", in, err)
	}
	name, rest, nested := strings.Cut(path, ".")
	m, offset, ok := tracepoint.Member(s.Members, name)
	if !ok {
		return 0, fmt.Errorf("struct %s of the kernel has no member %s", in, name)
	}
	if nested {
		inner, err := find(kernel, m.Type.TypeName(), rest, size)
		return int32(offset) + inner, err
	}
	if has, err := btf.Sizeof(m.Type); size != 0 && (err != nil || has != size) {
		return 0, fmt.Errorf("member %s of struct %s of the kernel has %d bytes, not %d", name, in, has, size)
	}
	return int32(offset), nil
}
