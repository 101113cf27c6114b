package binary

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir/flow"
)

// graph is the control flow of a function: its blocks, and the instructions in them.
type graph struct {
	flow.Graph
	insts  []instruction // in the order of their addresses
	pieces []instPiece   // of each block
	starts []int32       // of each instruction, the number of the block that begins there, counted from 1
	parts  []codePart
}

// instPiece has the indices of the instructions of a block.
type instPiece struct{ from, to int }

// instruction is a decoded instruction with where control goes from it.
type instruction struct {
	machineCode
	addr   uint64
	falls  bool     // control may go on to the next instruction
	splits bool     // a block ends behind it
	to     []uint64 // other addresses in the function where control may go on
	callee string   // of a call: the symbol that is called, "*" if it is not known
}

func (i *instruction) end() uint64 { return i.addr + uint64(i.Len) }

// target returns where a direct branch or call leads.
func (i *instruction) target() uint64 { return i.end() + uint64(int64(i.distance)) }

// next returns the addresses in the function where control may go on.
func (i *instruction) next() []uint64 {
	if i.falls {
		return append([]uint64{i.end()}, i.to...)
	}
	return i.to
}

// maxAnalysed limits the code of functions whose control flow is analysed.
const maxAnalysed = 1 << 20

// analyse decodes a function along its control flow. The error is a *CodeError if a part of its
// code is not understood, because counts in an incomplete graph would be wrong.
func (im *Image) analyse(f symbol) (*graph, error) {
	d := descent{im: im, f: f}
	d.insts = kept[instruction](&keptInstructions, 0)
	defer func() { keep(&keptInstructions, d.insts) }()
	if err := d.enlarge(f); err != nil {
		return nil, err
	}
	for d.todo = []uint64{f.addr}; len(d.todo) > 0; {
		if err := d.all(); err != nil {
			return nil, err
		}
		if err := d.complete(); err != nil {
			return nil, err
		}
	}
	return d.graph()
}

// Memory for the instructions of functions, their positions, and the values of the stack pointer before them.
var keptInstructions, keptPositions, keptDepths sync.Pool

// kept returns a list with zeros from the memory of another one.
func kept[T any](from *sync.Pool, size int) []T {
	if list, ok := from.Get().(*[]T); ok && cap(*list) >= size {
		return (*list)[:size]
	}
	return make([]T, size)
}

// keep lets another function use the memory of a list.
func keep[T any](to *sync.Pool, list []T) {
	clear(list)
	to.Put(&list)
}

// descent decodes a function from its entry on.
type descent struct {
	im      *Image
	f       symbol
	parts   []codePart
	size    int
	pads    []padRange
	insts   []instruction // in the order in which they were decoded
	todo    []uint64
	skipped []piece // code that only the runtime of the language reaches
	tables  []piece // tables of switches
}

// codePart is the code of a function, or of a part of it that the compiler moved elsewhere.
type codePart struct {
	low  uint64
	code []byte
	// at has the number of the instruction that begins at each byte, counted from 1, or the negative number of
	// the instruction that the byte is inside of.
	at []int32
	// leads has the bytes where control arrives other than from the instruction before.
	leads []bool
}

func (p *codePart) holds(addr uint64) bool { return addr-p.low < uint64(len(p.code)) }

// partOf returns the part that contains an address, nil if none does.
func partOf(parts []codePart, addr uint64) *codePart {
	for i := range parts {
		if parts[i].holds(addr) {
			return &parts[i]
		}
	}
	return nil
}

// numberAt returns the index of the instruction that begins at an address, or -1.
func numberAt(parts []codePart, addr uint64) int {
	if p := partOf(parts, addr); p != nil && p.at[addr-p.low] > 0 {
		return int(p.at[addr-p.low]) - 1
	}
	return -1
}

// known returns the instruction that begins at an address, nil if none was decoded there. It is valid until the next
// one is decoded.
func (d *descent) known(addr uint64) *instruction {
	if i := numberAt(d.parts, addr); i >= 0 {
		return &d.insts[i]
	}
	return nil
}

// instAt returns the index of the instruction to which an address belongs, or -1.
func (g *graph) instAt(addr uint64) int {
	p := partOf(g.parts, addr)
	if p == nil {
		return -1
	}
	offset := addr - p.low
	for offset > 0 && p.at[offset] < 0 {
		offset--
	}
	return int(p.at[offset]) - 1
}

// whole decodes an instruction with its operands.
func whole(parts []codePart, i *instruction) x86asm.Inst {
	p := partOf(parts, i.addr)
	inst, _ := decodeInstruction(p.code[i.addr-p.low:])
	return inst
}

func (g *graph) whole(i *instruction) x86asm.Inst { return whole(g.parts, i) }

func (d *descent) fail(at uint64, format string, args ...any) error {
	return &CodeError{d.f.name, at, fmt.Sprintf(format, args...)}
}

// enlarge adds a part to the function.
func (d *descent) enlarge(part symbol) error {
	const most = 64
	code, err := d.im.code(part.addr, part.size)
	if err != nil {
		return err
	}
	if d.size += len(code); d.size > maxAnalysed || len(d.parts) == most {
		return d.fail(part.addr, "more than %d bytes or %d parts of code", maxAnalysed, most)
	}
	d.parts = append(d.parts, codePart{part.addr, code, make([]int32, len(code)), make([]bool, len(code))})
	pads, err := d.im.landingPads(part)
	d.pads = append(d.pads, pads...)
	return err
}

// bytes returns the code from an address on, nil outside of the function.
func (d *descent) bytes(addr uint64) []byte {
	if p := partOf(d.parts, addr); p != nil {
		return p.code[addr-p.low:]
	}
	return nil
}

// lead notes that control arrives at an address other than from the instruction before.
func (d *descent) lead(addr uint64) {
	if p := partOf(d.parts, addr); p != nil {
		p.leads[addr-p.low] = true
	}
}

// all decodes from all addresses that are still to decode.
func (d *descent) all() error {
	for len(d.todo) > 0 {
		at := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		if err := d.run(at); err != nil {
			return err
		}
	}
	return nil
}

// run decodes instructions until control does not go on to the next one.
func (d *descent) run(at uint64) error {
	for d.known(at) == nil {
		inst, err := d.decode(at)
		if err != nil {
			return err
		}
		if err := d.follow(inst); err != nil {
			return err
		}
		for _, to := range inst.to {
			if to != inst.end() {
				d.lead(to)
				d.todo = append(d.todo, to)
			}
		}
		if inst.splits {
			d.lead(inst.end())
		}
		if !inst.falls && !slices.Contains(inst.to, inst.end()) {
			return nil
		}
		at = inst.end()
	}
	return nil
}

// decode decodes the instruction at an address. It is valid until the next call.
func (d *descent) decode(at uint64) (*instruction, error) {
	p := partOf(d.parts, at)
	if p == nil {
		return nil, d.fail(at, "control leaves the function without a branch")
	}
	offset := at - p.low
	if n := p.at[offset]; n < 0 {
		return nil, d.fail(at, "a branch leads into the middle of the instruction at %#x", d.insts[-n-1].addr)
	}
	decoded, ok := decodeFlow(p.code[offset:])
	if !ok {
		return nil, d.fail(at, "an unknown instruction")
	}
	number := int32(len(d.insts)) + 1
	for a := offset + 1; a < offset+uint64(decoded.Len); a++ {
		if p.at[a] > 0 {
			return nil, d.fail(p.low+a, "a branch leads into the middle of the instruction at %#x", at)
		}
		p.at[a] = -number
	}
	p.at[offset] = number
	d.insts = append(d.insts, instruction{machineCode: decoded, addr: at})
	return &d.insts[len(d.insts)-1], nil
}

// follow finds where control goes from an instruction.
func (d *descent) follow(inst *instruction) error {
	switch {
	case inst.Op == x86asm.CALL || inst.Op == x86asm.LCALL:
		return d.call(inst)
	case inst.Op == x86asm.RET, inst.Op == x86asm.LRET, inst.Op == x86asm.IRET, inst.Op == x86asm.IRETQ, inst.Op == x86asm.IRETD,
		inst.Op == x86asm.UD1, inst.Op == x86asm.UD2, inst.Op == x86asm.HLT, inst.Op == x86asm.INT && inst.Len == 1:
		inst.splits = true
	case isJump(inst.Op):
		return d.jump(inst)
	default:
		inst.falls = true
	}
	return nil
}

// jump follows a jump: inside the function, to a part of it elsewhere, or out of it.
func (d *descent) jump(inst *instruction) error {
	inst.splits = true
	conditional := inst.Op != x86asm.JMP
	inst.falls = conditional
	if !inst.direct {
		return d.indirect(inst)
	}
	target := inst.target()
	if d.bytes(target) == nil {
		cold, ok := d.im.coldPart(jump{addr: inst.addr, direct: true, target: target, conditional: conditional})
		switch {
		case ok:
			if err := d.enlarge(cold); err != nil {
				return err
			}
		case conditional:
			return d.fail(inst.addr, "a conditional jump to another function")
		default:
			return nil // a tail call
		}
	}
	if d.bytes(target) != nil {
		inst.to = append(inst.to, target)
	}
	return nil
}

// indirect follows a jump through a register or memory, which is that of a switch or a tail call.
func (d *descent) indirect(inst *instruction) error {
	targets, isTable, err := d.table(inst)
	switch {
	case err != nil:
		return err
	case isTable:
		inst.to = targets
	case slices.Contains(d.bytes(inst.addr)[:inst.Len-1], 0x3e): // compilers use the prefix for a switch
		return d.fail(inst.addr, "a jump of a switch whose table is not found")
	}
	return nil
}

// call follows a call: to the next instruction if it returns, and to what handles exceptions.
func (d *descent) call(inst *instruction) error {
	target, name := d.im.callee(d.parts, inst)
	inst.callee = cmp.Or(name, "*")
	if returnsTwice[name] {
		return d.fail(inst.addr, "a call of %s, which may return several times", name)
	}
	if slices.Contains(growing, name) {
		d.restart(inst)
		return nil
	}
	inst.falls = !d.im.neverReturns(target, name) && d.bytes(inst.end()) != nil
	if pad := padOf(d.pads, inst.addr); pad != 0 {
		inst.to, inst.splits = append(inst.to, pad), true
		if d.bytes(pad) == nil {
			if part, ok := d.im.frames().find(pad); !ok {
				return d.fail(pad, "an exception is handled outside of the function")
			} else if err := d.enlarge(part); err != nil {
				return err
			}
		}
	}
	inst.splits = inst.splits || !inst.falls && len(inst.to) == 0
	return nil
}

// restart skips the code behind the call with which a function of Go grows its stack: it restores
// the arguments and jumps to the entry, where the function begins as if it had not run before.
func (d *descent) restart(inst *instruction) {
	inst.splits = true
	at := inst.end()
	for range longestGrow {
		next, ok := decodeFlow(d.bytes(at))
		if !ok {
			return
		}
		at += uint64(next.Len)
		if next.Op == x86asm.JMP {
			d.skipped = append(d.skipped, piece{inst.end(), at})
			return
		}
	}
}

// complete checks that control reaches all code: other code would be reached in a way that was not
// found. An exception is code behind a call that does not return, which the compiler did not know:
// complete treats such a call as one that returns.
func (d *descent) complete() error {
	for i := range d.parts {
		p := &d.parts[i]
		var before *instruction
		for at := p.low; p.holds(at); {
			if inst := d.known(at); inst != nil {
				before, at = inst, inst.end()
				continue
			}
			if end := max(coveredBy(d.skipped, at), coveredBy(d.tables, at)); end > 0 {
				at = end
				continue
			}
			inst, ok := decodeInstruction(d.bytes(at))
			if ok && !isPadding(inst) && before != nil && before.callee != "" && before.end() == at {
				before.to, before.splits = append(before.to, at), true
				d.lead(at)
				d.todo = append(d.todo, at)
				return nil
			}
			if !ok || !isPadding(inst) {
				return d.fail(at, "code that no branch leads to")
			}
			at += uint64(inst.Len)
		}
	}
	return nil
}

// coveredBy returns the end of the piece that contains an address, 0 if none does.
func coveredBy(pieces []piece, at uint64) uint64 {
	for _, p := range pieces {
		if p.low <= at && at < p.end {
			return p.end
		}
	}
	return 0
}

// isPadding reports whether an instruction may be between functions or loops without purpose.
func isPadding(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.NOP, x86asm.UD1, x86asm.UD2:
		return true
	case x86asm.INT:
		return inst.Len == 1
	case x86asm.XCHG, x86asm.MOV:
		return inst.Args[0] == inst.Args[1]
	}
	return false
}

// graph divides the code into blocks.
func (d *descent) graph() (*graph, error) {
	g := &graph{insts: d.inOrder(), parts: d.parts}
	g.starts = make([]int32, len(g.insts))
	blocks := 1
	for i := range g.insts {
		if d.begins(g, i) {
			blocks++
		}
	}
	g.Blocks, g.pieces = make([]flow.Block, 0, blocks), make([]instPiece, 0, blocks)
	entry := numberAt(g.parts, d.f.addr)
	g.begin(entry) // Blocks[0] is the entry, whatever its address
	for i := range g.insts {
		if i != entry && d.begins(g, i) {
			g.begin(i)
		}
	}
	edges := make([]int, 0, 2*len(g.Blocks))
	for b := range g.Blocks {
		last := g.lastOf(g.pieces[b].from)
		g.end(b, last, g.pieces[b].from)
		from := len(edges)
		for _, to := range g.insts[last].next() {
			next := g.blockAt(to)
			if next < 0 {
				return nil, d.fail(to, "control reaches no instruction")
			}
			edges = append(edges, next)
		}
		g.Blocks[b].Succ = edges[from:len(edges):len(edges)]
	}
	return g, g.Connect()
}

// begins reports whether a block begins at an instruction.
func (d *descent) begins(g *graph, i int) bool {
	return i == 0 || d.leads(g.insts[i].addr) || g.insts[i-1].end() != g.insts[i].addr
}

// begin adds a block that begins at an instruction.
func (g *graph) begin(i int) {
	g.Blocks, g.pieces = append(g.Blocks, flow.Block{Start: g.insts[i].addr}), append(g.pieces, instPiece{i, i})
	g.starts[i] = int32(len(g.Blocks))
}

// blockAt returns the block that begins at an address, -1 if none does.
func (g *graph) blockAt(addr uint64) int {
	if i := numberAt(g.parts, addr); i >= 0 {
		return int(g.starts[i]) - 1
	}
	return -1
}

// leads reports whether control arrives at an address other than from the instruction before.
func (d *descent) leads(addr uint64) bool {
	p := partOf(d.parts, addr)
	return p.leads[addr-p.low]
}

// inOrder returns the instructions in the order of their addresses, and numbers them in this order.
func (d *descent) inOrder() []instruction {
	slices.SortFunc(d.parts, func(a, b codePart) int { return cmp.Compare(a.low, b.low) })
	all := slices.Grow(kept[instruction](&keptInstructions, 0), len(d.insts))
	for i := range d.parts {
		p := &d.parts[i]
		for at, n := range p.at {
			if n > 0 {
				all = append(all, d.insts[n-1])
				p.at[at] = int32(len(all))
			}
		}
	}
	return all
}

// end sets the last instruction of a block. The straight code that leads to it begins at another one.
func (g *graph) end(b, last, straight int) {
	g.pieces[b].to = last + 1
	g.Blocks[b].End = g.insts[last].end()
	// A uprobe on a nop can harm the program.
	for last > straight && g.insts[last].Op == x86asm.NOP {
		last--
	}
	g.Blocks[b].Last = g.insts[last].addr
}

// lastOf returns the index of the last instruction of the block that begins at an instruction.
func (g *graph) lastOf(i int) int {
	for i+1 < len(g.insts) && !g.insts[i].splits && g.insts[i].end() == g.insts[i+1].addr && g.starts[i+1] == 0 {
		i++
	}
	return i
}

// code returns the instructions of a block.
func (g *graph) code(b int) []instruction { return g.insts[g.pieces[b].from:g.pieces[b].to] }

// returning returns for each block whether the function may return from there, and true for all
// blocks of a function that never returns.
func (g *graph) returning() []bool {
	returns := make([]bool, len(g.Blocks))
	var todo []int
	for b := range g.Blocks {
		code := g.code(b)
		switch last := &code[len(code)-1]; {
		case len(g.Blocks[b].Succ) > 0:
		case last.Op == x86asm.RET, last.Op == x86asm.JMP:
			todo = append(todo, b)
		}
	}
	if len(todo) == 0 {
		return slices.Repeat([]bool{true}, len(g.Blocks))
	}
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !returns[b] {
			returns[b] = true
			todo = append(todo, g.Blocks[b].Pred...)
		}
	}
	return returns
}
