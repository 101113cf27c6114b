//go:build linux

package sched

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis"
	"mirador/omis/host/tracepoint"
)

// layout holds the offsets at which this kernel keeps the number of a thread and its
// running time.
type layout struct {
	pid       int32 // in task_struct: the number in the outermost namespace
	threadPID int32 // in task_struct: the struct pid with all numbers
	pidLevel  int32 // in struct pid: the count of numbers, minus one
	numbers   int32 // in struct pid: an array of struct upid
	upid, nr  int32 // size of struct upid, and offset of the number in it

	entity         int32 // in task_struct: its struct sched_entity
	ran, ranBefore int32 // in struct sched_entity: total time on processors, and the same before this turn

	inIOWait  int32 // in task_struct: the byte with the bit that is set while the task waits for a disk
	ioWaitBit int32

	// level is the depth of the monitor's pid namespace, whose thread numbers the monitor
	// uses.
	level int32
}

func findLayout() (layout, error) {
	var l layout
	kernel, err := tracepoint.KernelTypes().Kernel()
	if err != nil {
		return l, unsupported("the kernel does not describe its types: %v", err)
	}
	if err := checkSwitch(kernel); err != nil {
		return l, err
	}
	for _, m := range []struct {
		in, name string
		offset   *int32
	}{
		{"task_struct", "pid", &l.pid}, {"task_struct", "thread_pid", &l.threadPID},
		{"pid", "level", &l.pidLevel}, {"pid", "numbers", &l.numbers}, {"upid", "nr", &l.nr},
		{"task_struct", "se", &l.entity}, {"task_struct", "in_iowait", &l.inIOWait},
		{"sched_entity", "sum_exec_runtime", &l.ran}, {"sched_entity", "prev_sum_exec_runtime", &l.ranBefore},
	} {
		var s *btf.Struct
		if err := kernel.TypeByName(m.in, &s); err != nil {
			return l, unsupported("the kernel does not describe struct %s: %v", m.in, err)
		}
		member, offset, ok := tracepoint.Member(s.Members, m.name)
		if !ok {
			return l, unsupported("struct %s of the kernel has no member %s", m.in, m.name)
		}
		*m.offset = int32(offset)
		switch m.name {
		case "nr":
			l.upid = int32(s.Size)
		case "in_iowait":
			l.ioWaitBit = 1 << (member.Offset % 8)
		}
	}
	return l, nil
}

func unsupported(format string, args ...any) error {
	return omis.Errorf(omis.UnsupportedService, "cannot observe scheduling: "+format, args...)
}

// checkSwitch checks that the last argument of the tracepoint is the state of the
// previous task (since Linux 5.19): a read from the task itself might return a later
// state.
func checkSwitch(kernel *btf.Spec) error {
	var signature *btf.Typedef
	if err := kernel.TypeByName("btf_trace_sched_switch", &signature); err != nil {
		return unsupported("the kernel does not describe its tracepoint: %v", err)
	}
	pointer, ok := signature.Type.(*btf.Pointer)
	if !ok {
		return unsupported("the tracepoint of this kernel is a %T", signature.Type)
	}
	f, ok := pointer.Target.(*btf.FuncProto)
	if !ok || len(f.Params) < 5 { // the first parameter is the tracepoint's data
		return unsupported("it requires Linux 5.19")
	}
	if _, ok := btf.UnderlyingType(f.Params[4].Type).(*btf.Int); !ok {
		return unsupported("it requires Linux 5.19")
	}
	return nil
}

// level returns the depth of this process's pid namespace, which it asks the kernel for.
func (o *Observer) level(l layout) (int32, error) {
	p, err := o.set.Program(append(asm.Instructions{
		asm.FnGetCurrentTask.Call(),
		asm.Mov.Reg(asm.R3, asm.R0),
	}, append(l.readPIDLevel("out"),
		asm.LoadMem(asm.R0, asm.RFP, stackLevel, asm.Word).WithSymbol("out"),
		asm.Return())...))
	if err != nil {
		return 0, err
	}
	n, err := p.Run(&ebpf.RunOptions{})
	if err != nil {
		return 0, fmt.Errorf("cannot find the pid namespace of the monitor: %w", err)
	}
	return int32(n), nil
}
