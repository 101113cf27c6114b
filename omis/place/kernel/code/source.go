//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"mirador/omis/program"
)

// Not every clock shows a time. Some clocks show the value that another store, the source, contains for the
// thread. The others show a number that the kernel counts in the thread's task_struct. Both change only while
// the thread itself runs, with one exception: another processor ends the wait of a thread, which cannot run a
// program then. So the value does not change while a program reads it.

// stackShown is the stack offset of the value that the clock of a step shows.
const stackShown = -160

// taskCounts has the offsets in task_struct of the numbers that clocks show. 0 means that this kernel lacks the number.
type taskCounts [program.Clocks]int16

// findTaskCounts finds the offsets in the type information of the kernel.
func findTaskCounts(types *btf.Spec, task *btf.Struct) (list taskCounts) {
	for clock, name := range map[program.Clock]string{
		program.ClockMinorFaults: "min_flt", program.ClockMajorFaults: "maj_flt",
		program.ClockVoluntary: "nvcsw", program.ClockInvoluntary: "nivcsw",
	} {
		if at, ok := member(task.Members, name); ok && at <= 1<<15-1 {
			list[clock] = int16(at)
		}
	}
	if list[program.ClockMajorFaults] != 0 {
		list[program.ClockFaults] = list[program.ClockMinorFaults] // both are added
	}
	if at, err := within(types, task, "se", "sched_entity", "nr_migrations"); err == nil {
		list[program.ClockMigrations] = at
	}
	if at, err := within(types, task, "sched_info", "sched_info", "run_delay"); err == nil {
		list[program.ClockQueued], list[program.ClockWaiting] = at, at // the waiting time is computed with it
	}
	for clock, name := range map[program.Clock]string{
		program.ClockRead: "rchar", program.ClockWritten: "wchar", program.ClockDiskRead: "read_bytes", program.ClockDiskWritten: "write_bytes",
	} {
		if at, err := within(types, task, "ioac", "task_io_accounting", name); err == nil {
			list[clock] = at
		}
	}
	return list
}

// of stores what the kernel counts for the thread.
func (list *taskCounts) of(clock program.Clock) asm.Instructions {
	code := asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R1, asm.R0, list[clock], asm.DWord),
	}
	if clock == program.ClockFaults {
		code = append(code, asm.LoadMem(asm.R2, asm.R0, list[program.ClockMajorFaults], asm.DWord), asm.Add.Reg(asm.R1, asm.R2))
	}
	return append(code, asm.StoreMem(asm.RFP, stackShown, asm.R1, asm.DWord))
}

// CanRead reports why a program cannot read its clocks at an event.
func (l *Layout) CanRead(scheduling bool, p program.Program) error {
	for _, op := range p {
		switch {
		case !op.Times():
		case op.Do == program.OpTake && (op.Clock.IsTime() || op.Clock == program.ClockWaiting):
			return &program.Refusal{Why: "a time at an instant means nothing"}
		case op.Clock.IsTime():
		case scheduling:
			return &program.Refusal{Why: "where a thread gets or loses its processor, programs in the kernel take the time, no other clock"}
		case op.Clock.IsOfTask() && l.counts[op.Clock] == 0, op.Clock == program.ClockWaiting && l.cpu.why != "":
			return &program.Refusal{Why: "this kernel does not count that for a thread, or not where programs find it"}
		}
	}
	return nil
}

// sourcesOf returns the kind of row that each step reads; nil if no step has a source.
func sourcesOf(steps []Step) []program.StoreKind {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Source != 0 }) {
		return nil
	}
	list := make([]program.StoreKind, len(steps))
	for i, s := range steps {
		list[i] = s.SourceKind
	}
	return list
}

// shows stores what the clock of a step shows, unless it shows a time.
func (a *assembler) shows(clock program.Clock, i int, name string) asm.Instructions {
	switch {
	case clock.IsTime():
		return nil
	case clock == program.ClockWaiting:
		return append(a.Layout.cpu.waiting(name+"waiting", a.Layout.counts[clock]), asm.StoreMem(asm.RFP, stackShown, asm.R0, asm.DWord))
	case clock.IsOfTask():
		return a.Layout.counts.of(clock)
	}
	p, none := a.Pools[a.from[i]], name+"nosource"
	code := asm.Instructions{asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackShown, asm.R1, asm.DWord)}
	code = append(code, a.sourceOf(i)...)
	code = append(code, asm.StoreMem(asm.RFP, stackCell, asm.R1, asm.Word))
	code = append(code, a.findRow(p, name+"source", none, none)...)
	code = append(code, a.cell(none)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.R2, 8*CellEpoch, asm.DWord),
		asm.LoadMem(asm.R2, rowAt, RowEpoch, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, none),
		asm.LoadMem(asm.R1, rowAt, p.Form.shown(), asm.DWord),
		asm.StoreMem(asm.RFP, stackShown, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(none))
}

// shown returns the offset of the value that a row shows as a clock.
func (f *Form) shown() int16 {
	if f.Kind.HasIntervals() {
		return rowTotal
	}
	return RowSum
}

// sourceOf puts the number of a step's source into R1.
func (a *assembler) sourceOf(i int) asm.Instructions {
	if a.fixed != nil {
		return asm.Instructions{asm.Mov.Imm(asm.R1, int32(a.fixed[i].Source))}
	}
	return append(fromSpot(spotStep(i)), asm.RSh.Imm(asm.R1, 32))
}

// take records what the clock shows as the measured value. tell is the code that passes the value to the next
// step.
func take(f *Form, tell asm.Instructions, name string) asm.Instructions {
	code := append(begin(f), asm.LoadMem(asm.R1, asm.RFP, stackShown, asm.DWord))
	code = append(code, tell...)
	code = append(code, measured(name)...)
	code = append(code, countInBucket(f, fmt.Sprint(name, "take"))...)
	return append(code, done(f)...)
}
