//go:build linux && amd64

package code

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/host/tracepoint"
)

// Layout has what programs need to identify the current thread: offsets in the structs of the running
// kernel, and the pid namespace.
type Layout struct {
	// Members of task_struct.
	pid, tgid, leader, started int16
	status                     int16 // thread_info.status: whether the system call is one of 32-bit code
	ran, ranBefore             int16 // se.sum_exec_runtime, and its value when the thread last got a processor
	inIOWait                   int16 // the byte with the bit in_iowait, which is set while the thread waits for a disk
	ioWaitBit                  int32
	cpu                        cpuClock
	counts                     taskCounts
	files                      filePath

	// nested reports that the monitor is in a pid namespace inside the machine's first one. dev and ino
	// identify the namespace; the monitor knows threads by their numbers in it.
	nested   bool
	dev, ino uint64
}

// initPIDNamespace is PROC_PID_INIT_INO: the inode of the first pid namespace on every Linux.
const initPIDNamespace = 0xEFFFFFFC

// FindLayout reads the type information of the running kernel. The error says why programs cannot run in it.
func FindLayout() (Layout, error) {
	var l Layout
	types, err := tracepoint.KernelTypes().Kernel()
	if err != nil {
		return l, fmt.Errorf("the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	var task *btf.Struct
	if err := types.TypeByName("task_struct", &task); err != nil {
		return l, fmt.Errorf("the kernel does not describe task_struct: %w", err)
	}
	for name, to := range map[string]*int16{
		"pid": &l.pid, "tgid": &l.tgid, "group_leader": &l.leader, "start_boottime": &l.started,
	} {
		offset, ok := member(task.Members, name)
		if !ok || offset > 1<<15-1 {
			return l, fmt.Errorf("task_struct of this kernel has no %s in reach (it takes Linux 5.6)", name)
		}
		*to = int16(offset)
	}
	for _, inner := range []struct {
		member, of, name string
		to               *int16
	}{
		{"thread_info", "thread_info", "status", &l.status},
		{"se", "sched_entity", "sum_exec_runtime", &l.ran}, {"se", "sched_entity", "prev_sum_exec_runtime", &l.ranBefore},
	} {
		if *inner.to, err = within(types, task, inner.member, inner.of, inner.name); err != nil {
			return l, err
		}
	}
	if l.inIOWait, l.ioWaitBit, err = findIOWait(task); err != nil {
		return l, err
	}
	l.cpu, l.counts = findCPUClock(types, task), findTaskCounts(types, task)
	l.files = findFilePath(types)
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return l, fmt.Errorf("cannot find the pid namespace of the monitor: %w", err)
	}
	l.nested, l.dev, l.ino = st.Ino != initPIDNamespace, st.Dev, st.Ino
	return l, nil
}

// within returns the offset in task_struct of a member of a struct that is itself a member of task_struct.
func within(types *btf.Spec, task *btf.Struct, outer, of, name string) (int16, error) {
	var inner *btf.Struct
	if err := types.TypeByName(of, &inner); err != nil {
		return 0, fmt.Errorf("the kernel does not describe %s: %w", of, err)
	}
	a, ok := member(task.Members, outer)
	b, has := member(inner.Members, name)
	if !ok || !has || a+b > 1<<15-1 {
		return 0, fmt.Errorf("task_struct of this kernel has no %s.%s in reach", outer, name)
	}
	return int16(a + b), nil
}

// findIOWait finds the byte and the bit of in_iowait.
func findIOWait(task *btf.Struct) (offset int16, bit int32, err error) {
	m, at, ok := tracepoint.Member(task.Members, "in_iowait")
	if !ok || at > 1<<15-1 {
		return 0, 0, fmt.Errorf("task_struct of this kernel has no in_iowait in reach")
	}
	return int16(at), 1 << (m.Offset % 8), nil
}

// member returns the offset of a member. It also looks in anonymous structs, which kernels with randomised
// layouts have.
func member(members []btf.Member, name string) (offset uint32, ok bool) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset.Bytes(), true
		}
		if inner, isStruct := btf.UnderlyingType(m.Type).(*btf.Struct); isStruct && m.Name == "" {
			if offset, ok := member(inner.Members, name); ok {
				return m.Offset.Bytes() + offset, true
			}
		}
	}
	return 0, false
}

// Reaches reports why programs may see other process and thread ids than the monitor does.
func (l *Layout) Reaches(pid int) error {
	if !l.nested {
		return nil
	}
	same, err := proc.SameNumbers(pid)
	if err == nil && !same {
		err = errors.New("the process lives in a pid namespace inside the monitor's, which itself is not the machine's first")
	}
	return err
}

// thread stores the start time and number of the current thread, which begin the key of its row. It jumps
// to label if the thread has no number in the monitor's pid namespace.
func (l *Layout) thread(label string) asm.Instructions {
	code := asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, l.started, asm.DWord),
		asm.StoreMem(asm.RFP, stackStarted, asm.R1, asm.DWord),
	}
	if !l.nested {
		return append(code,
			asm.LoadMem(asm.R1, asm.R0, l.pid, asm.Word),
			asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word))
	}
	code = append(code, l.numbers(label)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackNumbers, asm.Word),
		asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word))
}

// process puts the number of the current process into R0. It jumps to label if the process has none in the
// monitor's pid namespace.
func (l *Layout) process(label string) asm.Instructions {
	if !l.nested {
		return asm.Instructions{asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32)}
	}
	return append(l.numbers(label), asm.LoadMem(asm.R0, asm.RFP, stackNumbers+4, asm.Word))
}

func (l *Layout) numbers(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadImm(asm.R1, int64(l.dev), asm.DWord),
		asm.LoadImm(asm.R2, int64(l.ino), asm.DWord),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackNumbers),
		asm.Mov.Imm(asm.R4, 8),
		asm.FnGetNsCurrentPidTgid.Call(),
		asm.JNE.Imm(asm.R0, 0, label),
	}
}
