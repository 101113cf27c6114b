//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"mirador/omis/node"
	"mirador/omis/program"
)

// Offsets in pt_regs. The kernel passes a program at a uprobe the address of this struct.
const (
	regIP    = 16 * 8
	regFlags = 18 * 8
	regSP    = 19 * 8
)

// Registers that programs use from beginning to end.
const (
	regsAt = asm.R6 // address of pt_regs
	rowAt  = asm.R7
	hitAt  = asm.R8 // time of the hit, if a step needs it
	kept   = asm.R9 // a value that must survive a call
)

// Stack offsets. The ones less than these are in scheduling.go, cputime.go and sample.go.
const (
	stackStarted = -16 // key of the row: start and number of the thread, number of the store
	stackTID     = -8
	stackCell    = -4
	stackNumbers = -24 // numbers of thread and process in the monitor's pid namespace
	stackSpot    = -32 // address of the spot
	stackOld     = -40 // while a link is replaced, in a run for the old link: serial number of the new one, else 0
	stackNew     = -48 // in a run for the new link: its own serial number, else 0
	stackRow     = -52 // number of a row
	stackChunk   = -56
	stackZero    = -60
	stackHanding = -64 // not 0 while a link is replaced
)

// end is the label of a program's last instructions.
const end = "end"

// assembler assembles the steps of a program.
type assembler struct {
	*Tables
	fixed []Step              // the steps of a program without a spot, which has parameters as constants
	from  []program.StoreKind // see Shape.Sources
	event bool                // the program is at an event, which has no stack pointer
	timed bool                // hitAt is when the event happened, not when the program began
	loads []program.Load      // see Shape
}

// AtUprobe assembles the program of a shape. If the process has mapped the file at several addresses, only
// hits at the requested address count.
func (t *Tables) AtUprobe(s *Shape) asm.Instructions {
	a := &assembler{Tables: t, loads: s.Loads, from: s.Sources}
	code := append(a.spot(), only(s.When)...)
	code = append(code, a.hit(s)...)
	code = append(code, a.Layout.thread(end)...)
	code = append(code, filter(s)...)
	for i, op := range s.Steps {
		code = append(code, a.step(op, s.Clocks[i], s.Kinds[i], i, fmt.Sprint("step", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// hit reads the time for the ends of intervals and for records, as early as possible. The program runs
// steps of all these shapes.
func (a *assembler) hit(all ...*Shape) (code asm.Instructions) {
	if slices.ContainsFunc(all, func(s *Shape) bool { return slices.ContainsFunc(s.Clocks, usesQueue) }) {
		code = a.Layout.cpu.find()
	}
	if slices.ContainsFunc(all, func(s *Shape) bool { return s.stops(program.ClockCPU) }) {
		code = append(append(code, a.Layout.cpu.read("hit")...), asm.StoreMem(asm.RFP, stackCPU, asm.R0, asm.DWord))
	}
	if slices.ContainsFunc(all, func(s *Shape) bool { return s.stops(program.ClockOrdered) || s.takesNotes() }) {
		code = append(code, asm.FnKtimeGetNs.Call(), asm.Mov.Reg(hitAt, asm.R0))
	}
	return code
}

// spot finds the spot, and ends the program if the hit does not count: see once.
func (a *assembler) spot() asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(regsAt, asm.R1),
		asm.FnGetAttachCookie.Call(),
		asm.Mov.Reg32(asm.R1, asm.R0), // the spot
		asm.RSh.Imm(asm.R0, 32),       // the link
	}
	code = append(code, a.Slab.address(asm.R2, asm.R1, end)...)
	code = append(code,
		asm.StoreImm(asm.RFP, stackZero, 0, asm.Word),
		asm.StoreImm(asm.RFP, stackHanding, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R2, spotLink, asm.DWord),
		asm.JEq.Reg(asm.R3, asm.R0, "runs"),
		asm.Mov.Reg32(asm.R4, asm.R3), // the link whose hits count
		asm.RSh.Imm(asm.R3, 32),       // the link that it replaces
		asm.JEq.Imm(asm.R3, 0, end),
		asm.StoreImm(asm.RFP, stackHanding, 1, asm.Word),
		asm.Mov.Imm(asm.R5, 0),
		asm.StoreMem(asm.RFP, stackOld, asm.R5, asm.DWord),
		asm.StoreMem(asm.RFP, stackNew, asm.R5, asm.DWord),
		asm.JEq.Reg(asm.R4, asm.R0, "new"),
		asm.JNE.Reg(asm.R3, asm.R0, end),
		asm.StoreMem(asm.RFP, stackOld, asm.R4, asm.DWord),
		asm.Ja.Label("runs"),
		asm.StoreMem(asm.RFP, stackNew, asm.R4, asm.DWord).WithSymbol("new"),
		asm.StoreMem(asm.RFP, stackSpot, asm.R2, asm.DWord).WithSymbol("runs"),
		asm.LoadMem(asm.R4, asm.R2, spotAddr, asm.DWord),
		asm.LoadMem(asm.R5, regsAt, regIP, asm.DWord),
		asm.JNE.Reg(asm.R4, asm.R5, end),
		asm.LoadMem(asm.R1, asm.R2, spotGone, asm.DWord))
	code = append(code, a.Slab.address(asm.R2, asm.R1, end)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.R2, 0, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, end))
}

// only ends the program unless the flags fulfil the condition.
func only(when node.Condition) asm.Instructions {
	if when == node.Always {
		return nil
	}
	t := when.Test()
	yes, no := "holds", end
	if t.Not {
		yes, no = end, "holds"
	}
	code := asm.Instructions{asm.LoadMem(asm.R1, regsAt, regFlags, asm.DWord)}
	if t.Any != 0 {
		code = append(code,
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.And.Imm(asm.R2, int32(t.Any)),
			asm.JNE.Imm(asm.R2, 0, yes))
	}
	if t.Differ {
		const apart = 4 // bits from sign to overflow
		code = append(code,
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, apart),
			asm.Xor.Reg(asm.R2, asm.R1),
			asm.And.Imm(asm.R2, node.FlagSign),
			asm.JNE.Imm(asm.R2, 0, yes))
	}
	return append(code, asm.Ja.Label(no), asm.Mov.Imm(asm.R0, 0).WithSymbol("holds"))
}

// filter ends the program unless the thread is one that the program is limited to.
func filter(s *Shape) asm.Instructions {
	if s.Threads == 0 {
		return nil
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.Div.Imm(asm.R2, NsPerTick),
		asm.LoadMem(asm.R3, asm.RFP, stackSpot, asm.DWord),
	}
	for i := range s.Threads {
		other, at := fmt.Sprint("thread", i), spotThread(len(s.Steps), i)
		code = append(code,
			asm.LoadMem(asm.R4, asm.R3, at, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R4, other),
			asm.LoadMem(asm.R4, asm.R3, at+8, asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R4, "meant"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	return append(code, asm.Ja.Label(end), asm.Mov.Imm(asm.R0, 0).WithSymbol("meant"))
}

// step assembles one step. Its labels begin with name; the last of them is where the next step begins.
func (a *assembler) step(op program.Operation, clock program.Clock, kind program.StoreKind, i int, name string) asm.Instructions {
	p, over := a.Pools[kind], name+"over"
	code := append(a.shows(clock, i, name), a.cellOf(i)...)
	code = append(code, asm.StoreMem(asm.RFP, stackCell, asm.R1, asm.Word))
	if a.tells(i) {
		code = append(code, a.untell(i)...)
	}
	switch op {
	case program.OpAdd:
		code = append(code, a.fits(a.loadOf(i), name+"before", over)...)
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.valueOf(i, name)...)
		code = append(code,
			asm.LoadMem(asm.R2, rowAt, RowSum, asm.DWord),
			asm.Add.Reg(asm.R2, asm.R1),
			asm.StoreMem(rowAt, RowSum, asm.R2, asm.DWord))
		code = append(code, a.tell(i, asm.R2)...)
	case program.OpStart, startWhole:
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.start(p, clock, false, op == startWhole, name)...)
	case startSome, startSomeWhole:
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.valueOf(i, name)...)
		code = append(code, lot()...)
		code = append(code, a.start(p, clock, true, op == startSomeWhole, name)...)
	case program.OpStop, stopWhole:
		code = append(code, a.rowAsItIs(p, name, over)...)
		code = append(code, a.stop(p, clock, i, op == stopWhole, name)...)
	case program.OpTake:
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, take(p.Form, a.tell(i, asm.R1), name)...)
	case program.OpTrace:
		code = append(code, a.wasTold(i, over)...)
		code = append(code, a.fits(a.loadOf(i), name+"before", over)...)
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.note(p.Form, i, name)...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(over))
}

// cellOf puts the number of a step's store into R1, valueOf its value.
func (a *assembler) cellOf(i int) asm.Instructions {
	if a.fixed != nil {
		return asm.Instructions{asm.Mov.Imm(asm.R1, int32(a.fixed[i].Cell))}
	}
	return fromSpot(spotStep(i))
}

func (a *assembler) valueOf(i int, name string) asm.Instructions {
	if l := a.loadOf(i); l.IsLoaded() {
		return a.load(l, name)
	}
	if a.fixed != nil {
		return asm.Instructions{asm.LoadImm(asm.R1, a.fixed[i].Value, asm.DWord)}
	}
	return fromSpot(spotStep(i) + 8)
}

// loadOf returns what a step loads.
func (a *assembler) loadOf(i int) (l program.Load) {
	if a.loads != nil {
		l = a.loads[i]
	}
	return l
}

func fromSpot(at int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackSpot, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at, asm.DWord),
	}
}

// find looks the row of the current thread up in the index. R0 is the address of its number, or 0.
func find(p *Pool) asm.Instructions { return lookup(p.Index, stackStarted) }

func lookup(m *ebpf.Map, key int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
	}
}

// locate puts the address of the row whose number is at stackRow into rowAt. It jumps to over if there is
// no such row.
func locate(p *Pool, over string) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackRow, asm.Word),
		asm.RSh.Imm(asm.R1, int32(p.Form.Chunk)),
		asm.StoreMem(asm.RFP, stackChunk, asm.R1, asm.Word),
	}
	code = append(code, lookup(p.Chunks, stackChunk)...)
	return append(code,
		asm.JEq.Imm(asm.R0, 0, over),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackZero),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, over),
		asm.LoadMem(asm.R1, asm.RFP, stackRow, asm.Word),
		asm.And.Imm(asm.R1, 1<<p.Form.Chunk-1),
		p.Form.scale(asm.R1),
		asm.Add.Reg(asm.R0, asm.R1),
		asm.Mov.Reg(rowAt, asm.R0))
}

// cell puts the address of the store's unit into R2.
func (a *assembler) cell(over string) asm.Instructions {
	return append(asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, stackCell, asm.Word)}, a.Slab.address(asm.R2, asm.R1, over)...)
}

// rowAsItIs finds the thread's row of this epoch. It jumps to over if there is none.
func (a *assembler) rowAsItIs(p *Pool, name, over string) asm.Instructions {
	code := a.findRow(p, name, over, over)
	code = append(code, a.once(name, over)...)
	code = append(code, a.cell(over)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.R2, 8*CellEpoch, asm.DWord),
		asm.LoadMem(asm.R2, rowAt, RowEpoch, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, over))
}

// rowToWrite finds the thread's row, or takes a new one, and clears it if its epoch is over. If there is no
// row for the thread, the hit counts as lost.
func (a *assembler) rowToWrite(p *Pool, name, over string) asm.Instructions {
	have, fresh, take := name+"have", name+"fresh", name+"take"
	code := append(a.findRow(p, name, take, over), asm.Ja.Label(have))
	code = append(code, a.newRow(p, name, over)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(have))
	code = append(code, a.once(name, over)...)
	code = append(code, a.cell(over)...)
	code = append(code,
		asm.LoadMem(kept, asm.R2, 8*CellEpoch, asm.DWord),
		asm.LoadMem(asm.R2, rowAt, RowEpoch, asm.DWord),
		asm.JEq.Reg(kept, asm.R2, fresh),
		asm.FnKtimeGetNs.Call())
	code = append(code, begin(p.Form)...)
	code = append(code,
		asm.StoreMem(rowAt, RowEpoch, kept, asm.DWord),
		asm.StoreMem(rowAt, RowFirst, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 0))
	for at := rowValues; at < p.Form.Begun; at += 8 {
		code = append(code, asm.StoreMem(rowAt, int16(at), asm.R1, asm.DWord))
	}
	code = append(code, clearBuckets(p.Form)...)
	code = append(code, done(p.Form)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(fresh))
}

// newRow takes a row from the ring, writes its owner, and enters it into the index.
func (a *assembler) newRow(p *Pool, name, over string) asm.Instructions {
	take, full, got := name+"take", name+"full", name+"got"
	code := asm.Instructions{asm.LoadMapValue(asm.R1, p.Ring.FD(), 0).WithSymbol(take)}
	for range 8 { // another processor may take the row first
		code = append(code,
			asm.LoadMem(asm.R2, asm.R1, RingHead, asm.DWord),
			asm.LoadMem(asm.R3, asm.R1, RingTail, asm.DWord),
			asm.JGE.Reg(asm.R2, asm.R3, full),
			asm.Mov.Reg(asm.R4, asm.R2), asm.And.Imm(asm.R4, RingSize-1), asm.LSh.Imm(asm.R4, 2), asm.Add.Reg(asm.R4, asm.R1),
			asm.LoadMem(asm.R5, asm.R4, RingEntries, asm.Word),
			asm.Mov.Reg(asm.R0, asm.R2), asm.Mov.Reg(asm.R3, asm.R2), asm.Add.Imm(asm.R3, 1),
			exchange(asm.R1, asm.R3, RingHead),
			asm.JEq.Reg(asm.R0, asm.R2, got))
	}
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(full))
	code = append(code, a.cell(over)...)
	code = append(code,
		asm.Mov.Imm(asm.R1, 1),
		asm.Add.Imm(asm.R2, 8*CellLost),
		asm.StoreXAdd(asm.R2, asm.R1, asm.DWord),
		asm.Ja.Label(over),
		asm.StoreMem(asm.RFP, stackRow, asm.R5, asm.Word).WithSymbol(got))
	code = append(code, locate(p, over)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackStarted, asm.DWord),
		asm.StoreMem(rowAt, RowStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.DWord),
		asm.StoreMem(rowAt, RowOwner, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, p.Index.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackRow),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JEq.Imm(asm.R0, 0, name+"have"),
		asm.Mov.Imm(asm.R1, unlisted),
		asm.StoreMem(rowAt, RowOwner+4, asm.R1, asm.Word),
		asm.Ja.Label(full))
	return code
}

// exchange stores a word in memory if the memory contains the value of R0. R0 gets the former contents.
func exchange(to, word asm.Register, offset int16) asm.Instruction {
	i := asm.CmpXchg.Mem(to, word, asm.DWord, offset)
	i.Constant = int64(asm.CmpXchg >> 8) // the library encodes only Constant, and leaves it 0
	return i
}

// begin and done enclose a change of a row. A reader copies the row from its beginning to its end; the copy
// is consistent if the numbers at both ends are the same. x86 processors do not reorder writes.
func begin(f *Form) asm.Instructions {
	at := int16(f.Begun)
	return asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, at, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(rowAt, at, asm.R1, asm.DWord),
	}
}

func done(f *Form) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, int16(f.Begun), asm.DWord),
		asm.StoreMem(rowAt, rowDone, asm.R1, asm.DWord),
	}
}
