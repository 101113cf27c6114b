//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// Members of pt_regs, which a program at a uprobe is handed.
const (
	regIP = 16 * 8
	regSP = 19 * 8
)

// Registers of a program that live from its beginning to its end.
const (
	regsAt = asm.R6 // pt_regs
	rowAt  = asm.R7
	hitAt  = asm.R8 // the time of the hit, where some step wants it
	kept   = asm.R9 // whatever has to outlive a call
)

// Places of a program's own stack.
const (
	stackStarted = -16 // the key of a row: start time and number of the thread, number of the store
	stackTID     = -8
	stackCell    = -4
	stackNumbers = -24 // what the kernel says of the namespace: thread, process
	stackSpot    = -32 // the address of the spot
	stackOld     = -40 // while a link takes over: in the old one, which the new one is
	stackNew     = -48 // in the new one, which that is
	stackRow     = -52 // the number of a row
	stackChunk   = -56
	stackZero    = -60
	stackHanding = -64 // not zero: a link takes over; further down see schedcode.go, cputime.go and sample.go
)

// end is the label of a program's last instructions.
const end = "end"

// shape is what programs have in common that differ in where they stand and what they
// change. One program of the kernel does for all of them: what is different is in the
// spots, which the cookies of uprobes tell.
type shape struct {
	steps   []program.Operation
	cpu     []bool // of each, whether it takes the CPU time
	kinds   []program.StoreKind
	loads   []program.Load // where one of them loads something
	threads int            // that are named
	program *ebpf.Program
}

func shapeOf(steps program.Program, named []thread) *shape {
	s := &shape{threads: len(named)}
	for _, op := range steps {
		s.steps, s.cpu, s.kinds = append(s.steps, stepOf(op)), append(s.cpu, takesCPU(op)), append(s.kinds, kindOf(op))
	}
	s.loads = loadsOf(steps)
	return s
}

// loadsOf are what steps load, step by step; nil where none does.
func loadsOf(steps program.Program) []program.Load {
	if !slices.ContainsFunc(steps, func(op program.Op) bool { return op.Load.IsLoaded() }) {
		return nil
	}
	list := make([]program.Load, len(steps))
	for i, op := range steps {
		list[i] = op.Load
	}
	return list
}

func (s *shape) String() string { return fmt.Sprint(s.steps, s.cpu, s.kinds, s.loads, s.threads) }

// assembler makes the code of a shape.
type assembler struct {
	layout *layout
	slab   *slab
	pools  *pools
	fixed  program.Program // what there is in place of a spot; nil: there is one
	event  bool            // what happens has no place of the stack
	timed  bool            // hitAt is when it happened, not only when programs began to see it
	loads  []program.Load  // as shape has them
}

// pools are those for the kinds of rows, where they are needed.
type pools [rowKinds]*pool

// kindOf is the kind of the rows that a step changes.
func kindOf(op program.Op) program.StoreKind { return storeIn(op).pool.form.kind }

// program assembles a shape. Where the kernel has mapped the file of the uprobe at
// several addresses, only the one that was meant counts.
func (a *assembler) program(s *shape) asm.Instructions {
	a.loads = s.loads
	code := a.spot()
	code = append(code, a.hit(s)...)
	code = append(code, a.layout.thread(end)...)
	code = append(code, filter(s)...)
	for i, op := range s.steps {
		code = append(code, a.step(op, s.cpu[i], s.kinds[i], i, fmt.Sprint("step", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// stops tells whether steps close intervals of CPU time, or else of what passes.
func (s *shape) stops(cpu bool) bool {
	for i, op := range s.steps {
		if op == program.OpStop && s.cpu[i] == cpu {
			return true
		}
	}
	return false
}

// hit takes the times at which intervals are closed, and notes taken, by programs of some
// shapes, as early as it can.
func (a *assembler) hit(all ...*shape) (code asm.Instructions) {
	if slices.ContainsFunc(all, func(s *shape) bool { return slices.Contains(s.cpu, true) }) {
		code = a.layout.cpu.find()
	}
	if slices.ContainsFunc(all, func(s *shape) bool { return s.stops(true) }) {
		code = append(append(code, a.layout.cpu.read("hit")...), asm.StoreMem(asm.RFP, stackCPU, asm.R0, asm.DWord))
	}
	if slices.ContainsFunc(all, func(s *shape) bool { return s.stops(false) || s.takesNotes() }) {
		code = append(code, asm.FnKtimeGetNs.Call(), asm.Mov.Reg(hitAt, asm.R0))
	}
	return code
}

// spot finds the spot, and ends the program where it is not to run: see spot.go.
func (a *assembler) spot() asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(regsAt, asm.R1),
		asm.FnGetAttachCookie.Call(),
		asm.Mov.Reg32(asm.R1, asm.R0), // the lower half: which spot
		asm.RSh.Imm(asm.R0, 32),       // the upper: which link
	}
	code = append(code, a.slab.address(asm.R2, asm.R1, end)...)
	code = append(code,
		asm.StoreImm(asm.RFP, stackZero, 0, asm.Word),
		asm.StoreImm(asm.RFP, stackHanding, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R2, spotLink, asm.DWord),
		asm.JEq.Reg(asm.R3, asm.R0, "runs"),
		asm.Mov.Reg32(asm.R4, asm.R3), // whose hits count
		asm.RSh.Imm(asm.R3, 32),       // whose did before, while they still come
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
	code = append(code, a.slab.address(asm.R2, asm.R1, end)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.R2, 0, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, end))
}

// filter ends the program for threads that were not asked for.
func filter(s *shape) asm.Instructions {
	if s.threads == 0 {
		return nil
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.Div.Imm(asm.R2, nsPerTick),
		asm.LoadMem(asm.R3, asm.RFP, stackSpot, asm.DWord),
	}
	for i := range s.threads {
		other, at := fmt.Sprint("thread", i), spotThread(len(s.steps), i)
		code = append(code,
			asm.LoadMem(asm.R4, asm.R3, at, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R4, other),
			asm.LoadMem(asm.R4, asm.R3, at+8, asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R4, "meant"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	return append(code, asm.Ja.Label(end), asm.Mov.Imm(asm.R0, 0).WithSymbol("meant"))
}

// step assembles one step. Its labels begin with its name; the last one is where the
// next step begins.
func (a *assembler) step(op program.Operation, cpu bool, kind program.StoreKind, i int, name string) asm.Instructions {
	p, over := a.pools[kind], name+"over"
	code := append(a.cellOf(i), asm.StoreMem(asm.RFP, stackCell, asm.R1, asm.Word))
	switch op {
	case program.OpAdd:
		code = append(code, a.fits(a.loadOf(i), name+"before", over)...)
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.valueOf(i, name)...)
		code = append(code,
			asm.LoadMem(asm.R2, rowAt, rowSum, asm.DWord),
			asm.Add.Reg(asm.R2, asm.R1),
			asm.StoreMem(rowAt, rowSum, asm.R2, asm.DWord))
	case program.OpStart:
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.start(p, cpu, false, name)...)
	case startSome:
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.valueOf(i, name)...)
		code = append(code, lot()...)
		code = append(code, a.start(p, cpu, true, name)...)
	case program.OpStop:
		code = append(code, a.rowAsItIs(p, name, over)...)
		code = append(code, a.stop(p, cpu, name)...)
	case program.OpTrace:
		code = append(code, a.fits(a.loadOf(i), name+"before", over)...)
		code = append(code, a.rowToWrite(p, name, over)...)
		code = append(code, a.note(p.form, i, name)...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(over))
}

// cellOf puts the number of a step's store into R1, valueOf its value.
func (a *assembler) cellOf(i int) asm.Instructions {
	if a.fixed != nil {
		return asm.Instructions{asm.Mov.Imm(asm.R1, int32(storeIn(a.fixed[i]).cell))}
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

// loadOf is what a step loads.
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

// find looks the row of the current thread up: R0 is the address of its number, or 0.
func find(p *pool) asm.Instructions { return lookup(p.index, stackStarted) }

func lookup(m *ebpf.Map, key int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
	}
}

// locate puts the address of the row whose number is on the stack into rowAt.
func locate(p *pool, over string) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackRow, asm.Word),
		asm.RSh.Imm(asm.R1, int32(p.form.chunk)),
		asm.StoreMem(asm.RFP, stackChunk, asm.R1, asm.Word),
	}
	code = append(code, lookup(p.chunks, stackChunk)...)
	return append(code,
		asm.JEq.Imm(asm.R0, 0, over),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackZero),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, over),
		asm.LoadMem(asm.R1, asm.RFP, stackRow, asm.Word),
		asm.And.Imm(asm.R1, 1<<p.form.chunk-1),
		p.form.scale(asm.R1),
		asm.Add.Reg(asm.R0, asm.R1),
		asm.Mov.Reg(rowAt, asm.R0))
}

// cell puts the address of the store's unit into R2.
func (a *assembler) cell(over string) asm.Instructions {
	return append(asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, stackCell, asm.Word)}, a.slab.address(asm.R2, asm.R1, over)...)
}

// rowAsItIs goes over where the thread has no row of this epoch.
func (a *assembler) rowAsItIs(p *pool, name, over string) asm.Instructions {
	code := a.findRow(p, name, over, over)
	code = append(code, a.once(name, over)...)
	code = append(code, a.cell(over)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.R2, 8*cellEpoch, asm.DWord),
		asm.LoadMem(asm.R2, rowAt, rowEpoch, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, over))
}

// rowToWrite takes a row where the thread has none, and clears one of an epoch that is
// over. A row that cannot be had is counted as lost.
func (a *assembler) rowToWrite(p *pool, name, over string) asm.Instructions {
	have, fresh, take := name+"have", name+"fresh", name+"take"
	code := append(a.findRow(p, name, take, over), asm.Ja.Label(have))
	code = append(code, a.newRow(p, name, over)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(have))
	code = append(code, a.once(name, over)...)
	code = append(code, a.cell(over)...)
	code = append(code,
		asm.LoadMem(kept, asm.R2, 8*cellEpoch, asm.DWord),
		asm.LoadMem(asm.R2, rowAt, rowEpoch, asm.DWord),
		asm.JEq.Reg(kept, asm.R2, fresh),
		asm.FnKtimeGetNs.Call())
	code = append(code, begin(p.form)...)
	code = append(code,
		asm.StoreMem(rowAt, rowEpoch, kept, asm.DWord),
		asm.StoreMem(rowAt, rowFirst, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 0))
	for at := rowValues; at < p.form.begun; at += 8 {
		code = append(code, asm.StoreMem(rowAt, int16(at), asm.R1, asm.DWord))
	}
	code = append(code, clearBuckets(p.form)...)
	code = append(code, done(p.form)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(fresh))
}

// newRow takes a row out of the ring, says whose it is, and enters it into the index.
func (a *assembler) newRow(p *pool, name, over string) asm.Instructions {
	take, full, got := name+"take", name+"full", name+"got"
	code := asm.Instructions{asm.LoadMapValue(asm.R1, p.ring.words.FD(), 0).WithSymbol(take)}
	for range 8 { // another processor may be quicker
		code = append(code,
			asm.LoadMem(asm.R2, asm.R1, ringHead, asm.DWord),
			asm.LoadMem(asm.R3, asm.R1, ringTail, asm.DWord),
			asm.JGE.Reg(asm.R2, asm.R3, full),
			asm.Mov.Reg(asm.R4, asm.R2), asm.And.Imm(asm.R4, ringSize-1), asm.LSh.Imm(asm.R4, 2), asm.Add.Reg(asm.R4, asm.R1),
			asm.LoadMem(asm.R5, asm.R4, ringEntries, asm.Word),
			asm.Mov.Reg(asm.R0, asm.R2), asm.Mov.Reg(asm.R3, asm.R2), asm.Add.Imm(asm.R3, 1),
			exchange(asm.R1, asm.R3, ringHead),
			asm.JEq.Reg(asm.R0, asm.R2, got))
	}
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(full))
	code = append(code, a.cell(over)...)
	code = append(code,
		asm.Mov.Imm(asm.R1, 1),
		asm.Add.Imm(asm.R2, 8*cellLost),
		asm.StoreXAdd(asm.R2, asm.R1, asm.DWord),
		asm.Ja.Label(over),
		asm.StoreMem(asm.RFP, stackRow, asm.R5, asm.Word).WithSymbol(got))
	code = append(code, locate(p, over)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackStarted, asm.DWord),
		asm.StoreMem(rowAt, rowStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.DWord),
		asm.StoreMem(rowAt, rowOwner, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, p.index.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackRow),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JEq.Imm(asm.R0, 0, name+"have"),
		asm.Mov.Imm(asm.R1, nobody),
		asm.StoreMem(rowAt, rowOwner+4, asm.R1, asm.Word),
		asm.Ja.Label(full))
	return code
}

// exchange puts a word into memory if what R0 has is there; R0 gets what was there.
func exchange(to, word asm.Register, offset int16) asm.Instruction {
	i := asm.CmpXchg.Mem(to, word, asm.DWord, offset)
	i.Constant = int64(asm.CmpXchg >> 8) // the library encodes the constant alone, and leaves it zero
	return i
}

// begin and done enclose what belongs together: a reader copies a row from its
// beginning to its end, and what it got is consistent if the numbers at both are
// the same. x86 keeps the order of writes.
func begin(f *form) asm.Instructions {
	at := int16(f.begun)
	return asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, at, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(rowAt, at, asm.R1, asm.DWord),
	}
}

func done(f *form) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, int16(f.begun), asm.DWord),
		asm.StoreMem(rowAt, rowDone, asm.R1, asm.DWord),
	}
}
