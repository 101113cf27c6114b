//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/host/tracepoint"
)

// layout is how programs learn who the current thread is.
type layout struct {
	// Members of task_struct.
	pid, tgid, leader, started int16
	status                     int16 // what its system call is, in its thread_info
	ran, ranBefore             int16 // time on processors, and that before this turn, in its sched_entity
	inIOWait                   int16 // the byte with the bit that says that it waits for a disk
	ioWaitBit                  int32
	cpu                        cpuClock
	sockets                    socketPath

	// nested tells that the monitor lives in a pid namespace of its own, which
	// dev and ino identify: it knows threads by their numbers there.
	nested   bool
	dev, ino uint64
}

// initPIDNamespace is PROC_PID_INIT_INO: the first pid namespace has this inode on
// every Linux.
const initPIDNamespace = 0xEFFFFFFC

func findLayout() (layout, error) {
	var l layout
	types, err := btf.LoadKernelSpec()
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
	l.cpu = findCPUClock(types, task)
	l.sockets = findSocketPath(types)
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return l, fmt.Errorf("cannot find the pid namespace of the monitor: %w", err)
	}
	l.nested, l.dev, l.ino = st.Ino != initPIDNamespace, st.Dev, st.Ino
	return l, nil
}

// within is where a member of a struct lies that is a member of task_struct itself.
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

// findIOWait finds the bit that is set while a task waits for a disk.
func findIOWait(task *btf.Struct) (offset int16, bit int32, err error) {
	m, at, ok := tracepoint.Member(task.Members, "in_iowait")
	if !ok || at > 1<<15-1 {
		return 0, 0, fmt.Errorf("task_struct of this kernel has no in_iowait in reach")
	}
	return int16(at), 1 << (m.Offset % 8), nil
}

// member finds a member, also in structs without a name, which randomised layouts
// have.
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

// reaches tells why the numbers that programs see may not be the ones that the
// monitor knows a process by; nil: they are.
func (l *layout) reaches(pid int) error {
	if !l.nested {
		return nil
	}
	same, err := proc.SameNumbers(pid)
	if err == nil && !same {
		err = errors.New("the process lives in a pid namespace inside the monitor's, which itself is not the machine's first")
	}
	return err
}

// thread puts the key of the current thread's row on the stack; label is where to go
// if it has none.
func (l *layout) thread(label string) asm.Instructions {
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

// process puts the number of the current process into R0.
func (l *layout) process(label string) asm.Instructions {
	if !l.nested {
		return asm.Instructions{asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32)}
	}
	return append(l.numbers(label), asm.LoadMem(asm.R0, asm.RFP, stackNumbers+4, asm.Word))
}

func (l *layout) numbers(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadImm(asm.R1, int64(l.dev), asm.DWord),
		asm.LoadImm(asm.R2, int64(l.ino), asm.DWord),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackNumbers),
		asm.Mov.Imm(asm.R4, 8),
		asm.FnGetNsCurrentPidTgid.Call(),
		asm.JNE.Imm(asm.R0, 0, label),
	}
}
