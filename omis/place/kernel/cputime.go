//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis/node"
	"mirador/omis/program"
)

// The CPU time of a thread is what CLOCK_THREAD_CPUTIME_ID says: all its turns on
// processors. The kernel adds the present turn to them from time to time, at its ticks and
// whenever the thread loses its processor, and notes when it did. No program can ask it to
// do so now; but what has passed since is the time that has passed, less what a host has
// taken away.
//
// It notes the times by a clock of its own for each processor, which stands still while a
// host has the processor (and, where it is told to account for that, in interrupts). So it
// takes the difference to the clock that does not. What is left is the same at both ends of
// an interval: where the clocks begin.

// cpuClock is where the kernel keeps the CPU time of threads. Offsets are of task_struct,
// sched_entity and all, unless told otherwise.
type cpuClock struct {
	why string // it is not known; else empty

	ran, noted   int16 // the turns so far, and up to which time
	queue        int16 // the run queue of its group
	ofQueue      int16 // in that, that of the processor; in which there are:
	lock         int16
	clock, tasks int16 // two clocks, the latter for tasks
}

// findCPUClock looks into what the kernel says of its types.
func findCPUClock(types *btf.Spec, task *btf.Struct) cpuClock {
	var c cpuClock
	for _, m := range []struct {
		to              *int16
		member, of, its string
	}{
		{&c.ran, "se", "sched_entity", "sum_exec_runtime"},
		{&c.noted, "se", "sched_entity", "exec_start"},
		{&c.queue, "se", "sched_entity", "cfs_rq"},
	} {
		var err error
		if *m.to, err = within(types, task, m.member, m.of, m.its); err != nil {
			return cpuClock{why: err.Error()}
		}
	}
	for _, m := range []struct {
		to       *int16
		of, name string
	}{
		{&c.ofQueue, "cfs_rq", "rq"}, {&c.lock, "rq", "__lock"}, {&c.clock, "rq", "clock"}, {&c.tasks, "rq", "clock_task"},
	} {
		at, ok := offsetIn(types, m.of, m.name)
		if !ok {
			return cpuClock{why: fmt.Sprintf("%s of this kernel has no %s in reach (it takes Linux 5.14 with CONFIG_FAIR_GROUP_SCHED)", m.of, m.name)}
		}
		*m.to = at
	}
	return c
}

// offsetIn is where a struct has a member.
func offsetIn(types *btf.Spec, of, name string) (int16, bool) {
	var s *btf.Struct
	if types.TypeByName(of, &s) != nil {
		return 0, false
	}
	offset, ok := member(s.Members, name)
	return int16(offset), ok && offset <= 1<<15-1
}

// Places of the stack of a program that wants the CPU time.
const (
	stackCPU   = -112 // the time of the hit
	stackNoted = -120
	stackNow   = -128
	stackQueue = -136 // the run queue of the processor, which stays the same while a program runs
	stackApart = -144 // how far the clocks are apart, at most
	stackWhole = -152 // the time with what they are apart by, or 0
)

const (
	// cpuTries is how often a program tries to read what other processors may be changing.
	cpuTries = 8
	// cpuBegin keeps times above 0, wherever clocks begin; and 0 is none.
	cpuBegin = 1 << 62
)

// find puts the run queue on the stack, for all times that the program reads. To follow
// pointers out of a task takes the kernel's verifier long: each time it looks all types of
// the kernel through for whether that can be trusted.
func (c *cpuClock) find() asm.Instructions {
	return asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, c.queue, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, c.ofQueue, asm.DWord),
		asm.StoreMem(asm.RFP, stackQueue, asm.R1, asm.DWord),
	}
}

// read puts the CPU time of the current thread into R0, or 0 if it cannot be read now. Its
// labels begin with a name.
func (c *cpuClock) read(name string) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.RFP, stackApart, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackWhole, asm.R1, asm.DWord),
	}
	for i := range cpuTries {
		code = append(code, c.try(fmt.Sprint(name, "try", i), name+"sure")...)
	}
	return append(code,
		asm.Mov.Imm(asm.R0, 0),
		asm.LoadMem(asm.R5, asm.RFP, stackWhole, asm.DWord),
		asm.JEq.Imm(asm.R5, 0, name+"none"),
		asm.LoadMem(asm.R1, asm.RFP, stackApart, asm.DWord),
		asm.Sub.Reg(asm.R5, asm.R1).WithSymbol(name+"sure"),
		asm.LoadImm(asm.R0, cpuBegin, asm.DWord),
		asm.Add.Reg(asm.R0, asm.R5),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(name+"none"))
}

// try goes on at a label, with the time in R5 and how far the clocks are apart in R1, if
// both are sure. The former is if the kernel noted no time meanwhile, as it does when the
// thread loses its processor; it is kept, as what the kernel adds to the turns it takes off
// from what has passed since.
//
// The latter is if no other processor changes the clocks: that takes the lock of the run
// queue, and the clock for tasks is changed last. Where the lock is taken, that is seldom
// for the clocks; so in the end the least is believed that was seen. In the few nanoseconds
// in which the one is changed already, it would be more.
func (c *cpuClock) try(name, sure string) asm.Instructions {
	doubt, next := name+"doubt", name+"next"
	return asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, c.noted, asm.DWord),
		asm.StoreMem(asm.RFP, stackNoted, asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, stackNow, asm.R0, asm.DWord),
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R5, asm.R0, c.ran, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, c.noted, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackNoted, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, next),
		asm.Sub.Reg(asm.R5, asm.R1),
		asm.LoadMem(asm.R1, asm.RFP, stackNow, asm.DWord),
		asm.Add.Reg(asm.R5, asm.R1),
		asm.StoreMem(asm.RFP, stackWhole, asm.R5, asm.DWord),
		asm.LoadMem(asm.R3, asm.RFP, stackQueue, asm.DWord),
		asm.LoadMem(asm.R4, asm.R3, c.tasks, asm.DWord),
		asm.LoadMem(asm.R1, asm.R3, c.clock, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R4),
		asm.LoadMem(asm.R2, asm.R3, c.lock, asm.Word),
		asm.JNE.Imm(asm.R2, 0, doubt),
		asm.LoadMem(asm.R2, asm.R3, c.tasks, asm.DWord),
		asm.JEq.Reg(asm.R2, asm.R4, sure),
		asm.LoadMem(asm.R2, asm.RFP, stackApart, asm.DWord).WithSymbol(doubt),
		asm.JGE.Reg(asm.R1, asm.R2, next),
		asm.StoreMem(asm.RFP, stackApart, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(next),
	}
}

// suits says why CPU time cannot be taken where a program is to run.
func (c *cpuClock) suits(kind node.EventKind, steps program.Program) error {
	switch {
	case !slices.ContainsFunc(steps, takesCPU):
		return nil
	case c.why != "":
		return &program.Refusal{Why: "programs in the kernel cannot find the CPU time of threads: " + c.why}
	case isScheduling(kind):
		return &program.Refusal{Why: "where a thread gets or loses its processor, programs in the kernel take the time that passes, not its CPU time"}
	}
	return nil
}

// takesCPU tells whether a step takes the CPU time.
func takesCPU(op program.Op) bool { return op.Times() && op.Clock == program.ClockCPU }
