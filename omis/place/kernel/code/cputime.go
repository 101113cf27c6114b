//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis/node"
	"mirador/omis/program"
)

// The CPU time of a thread is what CLOCK_THREAD_CPUTIME_ID reports. The kernel adds it up in
// se.sum_exec_runtime. It updates the sum at its ticks and whenever the thread loses its processor, and
// writes the time of the update to se.exec_start. A program cannot request an update. It adds the time that
// has passed since the last one, less the time during which a hypervisor ran something else on the
// processor.
//
// The kernel dates updates by the clock of the processor's run queue for tasks (clock_task), which stops
// while the hypervisor uses the processor (and during interrupts, if the kernel accounts for them). A
// program cannot read this clock as of now. It reads the monotonic clock instead, and subtracts the
// difference of the run queue's two clocks (clock and clock_task), which is the time that clock_task has
// lost. The clocks begin at different times, but this error is the same at both ends of an interval.

// cpuClock has the offsets of the members that a program needs to compute CPU times. Members of
// sched_entity and of run queues are counted from the structs named below.
type cpuClock struct {
	why string // why CPU times cannot be computed, "" if they can

	ran, noted   int16 // in task_struct: se.sum_exec_runtime and se.exec_start
	queue        int16 // in task_struct: se.cfs_rq, the queue of the thread's group
	ofQueue      int16 // in cfs_rq: rq, the run queue of the processor
	lock         int16
	clock, tasks int16 // in rq, as __lock
}

// findCPUClock finds the offsets in the type information of the kernel.
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

// offsetIn returns the offset of a member of a struct.
func offsetIn(types *btf.Spec, of, name string) (int16, bool) {
	var s *btf.Struct
	if types.TypeByName(of, &s) != nil {
		return 0, false
	}
	offset, ok := member(s.Members, name)
	return int16(offset), ok && offset <= 1<<15-1
}

// Stack offsets of programs that read the CPU time.
const (
	stackCPU   = -112 // the CPU time at the beginning of the program
	stackNoted = -120
	stackNow   = -128
	stackQueue = -136 // the run queue of the processor; it does not change while a program runs
	stackApart = -144 // the smallest difference of clock and clock_task that was seen
	stackWhole = -152 // sum_exec_runtime - exec_start + monotonic clock, or for waiting the difference alone; 0 if it could not be read
)

const (
	// cpuTries is how often a program tries to read values that other processors may be changing.
	cpuTries = 8
	// cpuBegin is added to all times, so that they are positive. 0 means that the time is unknown.
	cpuBegin = 1 << 62
)

// find stores the address of the run queue, once for all reads of the CPU time in a program. The kernel's
// verifier checks each pointer that is loaded from a task against all types of the kernel, which takes
// long.
func (c *cpuClock) find() asm.Instructions {
	return asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, c.queue, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, c.ofQueue, asm.DWord),
		asm.StoreMem(asm.RFP, stackQueue, asm.R1, asm.DWord),
	}
}

// read puts the CPU time of the current thread into R0, or 0 if it cannot be read. Its labels begin with
// name.
func (c *cpuClock) read(name string) asm.Instructions {
	code := c.attempt(name, c.whole)
	return append(code,
		asm.Sub.Reg(asm.R5, asm.R1).WithSymbol(name+"sure"),
		asm.LoadImm(asm.R0, cpuBegin, asm.DWord),
		asm.Add.Reg(asm.R0, asm.R5),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(name+"none"))
}

// waiting puts the time for which the current thread was not ready into R0, with an unknown beginning, or 0 if
// it cannot be read. queued is the offset of the time for which it was ready without running. When a thread
// gets a processor, the kernel sets exec_start to now; while it runs, the kernel adds the same to exec_start
// and sum_exec_runtime. So their difference grows by the time for which the thread does not run.
func (c *cpuClock) waiting(name string, queued int16) asm.Instructions {
	code := c.attempt(name, c.idle)
	return append(code,
		asm.Add.Reg(asm.R5, asm.R1).WithSymbol(name+"sure"),
		asm.StoreMem(asm.RFP, stackWhole, asm.R5, asm.DWord),
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R5, asm.R0, queued, asm.DWord),
		asm.LoadImm(asm.R0, cpuBegin, asm.DWord),
		asm.Sub.Reg(asm.R0, asm.R5),
		asm.LoadMem(asm.R5, asm.RFP, stackWhole, asm.DWord),
		asm.Add.Reg(asm.R0, asm.R5),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(name+"none"))
}

// attempt tries several times to put a part of the result into R5 and the difference of the clocks into R1,
// and jumps to sure; if it is not sure, it continues with the best values. If it has none, it puts 0 into R0
// and jumps to none.
func (c *cpuClock) attempt(name string, part func(next string) asm.Instructions) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.RFP, stackApart, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackWhole, asm.R1, asm.DWord),
	}
	for i := range cpuTries {
		code = append(code, c.try(fmt.Sprint(name, "try", i), name+"sure", part)...)
	}
	return append(code,
		asm.Mov.Imm(asm.R0, 0),
		asm.LoadMem(asm.R5, asm.RFP, stackWhole, asm.DWord),
		asm.JEq.Imm(asm.R5, 0, name+"none"),
		asm.LoadMem(asm.R1, asm.RFP, stackApart, asm.DWord))
}

// whole puts sum_exec_runtime - exec_start + now into R5, or jumps to next if that is not reliable: exec_start
// must be the same before and after. The value stays valid in later tries, because what the kernel adds to
// sum_exec_runtime it also adds to exec_start.
func (c *cpuClock) whole(next string) asm.Instructions {
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
	}
}

// idle puts exec_start - sum_exec_runtime into R5, as whole does.
func (c *cpuClock) idle(next string) asm.Instructions {
	return asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R5, asm.R0, c.noted, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, c.ran, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, c.noted, asm.DWord),
		asm.JNE.Reg(asm.R5, asm.R2, next),
		asm.Sub.Reg(asm.R5, asm.R1),
	}
}

// try reads both parts once. If both are reliable, it jumps to sure, with the part in R5 and the difference of
// the clocks in R1.
//
// The difference in R1 is reliable if the run queue was not locked and clock_task is the same before and
// after: a processor that changes the clocks holds the lock, and changes clock_task last. Most holders of
// the lock do not change the clocks, so that a difference that was read while the lock was taken is
// usually correct. After a holder has changed clock, and before it changes clock_task, the difference is
// too large. So if the lock is taken in all tries, the program uses the smallest difference that it saw.
func (c *cpuClock) try(name, sure string, part func(next string) asm.Instructions) asm.Instructions {
	doubt, next := name+"doubt", name+"next"
	return append(part(next),
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
		asm.Mov.Imm(asm.R1, 0).WithSymbol(next))
}

// CanTakeCPU reports why a program cannot read the CPU time at an event.
func (l *Layout) CanTakeCPU(kind node.EventKind, p program.Program) error {
	switch {
	case !slices.ContainsFunc(p, takesCPU):
		return nil
	case l.cpu.why != "":
		return &program.Refusal{Why: "programs in the kernel cannot find the CPU time of threads: " + l.cpu.why}
	case IsScheduling(kind):
		return &program.Refusal{Why: "where a thread gets or loses its processor, programs in the kernel take the time that passes, not its CPU time"}
	}
	return nil
}

// takesCPU reports whether a step reads the CPU time.
func takesCPU(op program.Op) bool { return op.Times() && op.Clock == program.ClockCPU }

// clockOf returns the clock of a step. It does not distinguish clocks of elapsed time.
func clockOf(op program.Op) program.Clock {
	if !op.Times() || op.Clock.IsElapsed() {
		return program.ClockOrdered
	}
	return op.Clock
}

// usesQueue reports whether a clock is read with the run queue of the processor.
func usesQueue(clock program.Clock) bool {
	return clock == program.ClockCPU || clock == program.ClockWaiting
}
