package binary

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/flow"
)

// part is the code of a line of the source: a region that has known beginnings, but no known ends. An execution
// goes on until a statement of another line begins.
type part struct {
	*tree         // of a graph in which the region's code has blocks of its own
	in     []bool // of blocks: whether control is in the region there
	either []bool // whether that depends on the way there
	empty  bool   // of each statement of the region no code is left
	most   int    // pieces in one block
}

// mark says whether statements begin at an instruction: some of the region, only others, and whether
// the last one, which the instruction's code belongs to, is of the region.
type mark struct{ any, region, last bool }

// newPart finds the code of a region in a function, whose instructions are marked. Between two pieces of it in a block,
// statements of other regions begin: they belong to the same execution, unless the pieces are apart. The part is valid until the
// next call.
func (o *owner) newPart(marks []mark, apart bool) *part {
	p := &part{tree: o.divided, empty: true}
	if cap(o.flags) < 3*len(p.Blocks) {
		o.flags = make([]bool, 3*len(p.Blocks))
	}
	blocks := o.flags[:3*len(p.Blocks)]
	clear(blocks)
	in, either, on := blocks[:len(p.Blocks)], blocks[len(p.Blocks):2*len(p.Blocks)], blocks[2*len(p.Blocks):]
	p.in, p.either = in, either
	for _, code := range o.pieces {
		marked, pieces := piecesOf(marks, code)
		if n := len(pieces); n > 1 && !apart {
			pieces = []instPiece{{pieces[0].from, pieces[n-1].to}}
		}
		if len(pieces) > 0 && pieces[0].from == marked {
			pieces[0].from, marked = code.from, code.from // what is before leads only to the region
		}
		p.most = max(p.most, len(pieces))
		for _, piece := range pieces {
			for i := piece.from; i < piece.to; i++ {
				p.empty = p.empty && !marks[i].last
				if b := p.starts[i]; b > 0 {
					in[b-1] = true
				}
			}
		}
		if marked > code.from { // no statement begins at the beginning of the block
			on[p.starts[code.from]-1] = true
		}
	}
	p.goOn(on)
	return p
}

// divide gives each statement blocks of its own, and each instance that begins at one of some addresses.
func (o *owner) divide(entries ...uint64) error {
	if o.divided != nil && !slices.ContainsFunc(entries, func(a uint64) bool { return o.begins(a) && o.divided.blockAt(a) < 0 }) {
		return nil
	}
	cuts := make([]bool, len(o.insts)+1)
	for _, n := range o.numbers {
		cuts[n+1] = true
	}
	for _, a := range append(entries, o.behind) {
		cuts[numberAt(o.parts, a)+1] = true
	}
	divided := *o.tree
	var err error
	divided.graph, err = o.graph.divided(cuts[1:])
	o.divided = &divided
	return err
}

// piecesOf returns the first instruction of a block at which a statement begins, which is the end of the block if
// there is none, and the pieces of the block that belong to the region: from one of its statements to one of
// another region.
func piecesOf(marks []mark, code instPiece) (marked int, pieces []instPiece) {
	marked = code.to
	open := false
	for i := code.from; i < code.to; i++ {
		m := marks[i]
		if !m.any {
			continue
		}
		marked = min(marked, i)
		switch {
		case m.region && !open:
			pieces = append(pieces, instPiece{i, code.to})
		case !m.region && open:
			pieces[len(pieces)-1].to = i
		}
		open = m.region
	}
	return marked, pieces
}

// goOn finds where the region goes on in blocks at whose beginning no statement begins.
func (p *part) goOn(on []bool) {
	any := func(b int, is []bool) bool {
		return slices.ContainsFunc(p.Blocks[b].Pred, func(from int) bool { return is[from] })
	}
	var open []int
	for b := range p.Blocks {
		if on[b] && b > 0 {
			open = append(open, b)
			p.in[b] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, b := range open {
			if p.in[b] && slices.ContainsFunc(p.Blocks[b].Pred, func(from int) bool { return !p.in[from] }) {
				p.in[b], changed = false, true
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, b := range open {
			if !p.in[b] && !p.either[b] && (any(b, p.in) || any(b, p.either)) {
				p.either[b], changed = true, true
			}
		}
	}
}

func (p *part) holds(b int) bool { return p.in[b] }

// region returns the region's code, and where it is entered and left.
func (p *part) region() *sir.Code { return p.between(p.Borders(p.holds)) }

// regionOfLine is region for a line. If all code of a loop belongs to the line, each iteration is an execution.
func (p *part) regionOfLine() (*sir.Code, error) {
	enter, leave := p.Borders(p.holds)
	loops, err := p.Loops()
	for i := range loops {
		l := &loops[i]
		if !slices.ContainsFunc(l.Body, func(b int) bool { return !p.in[b] }) {
			again := l.Back(&p.Graph)
			enter, leave = append(enter, again...), append(leave, again...)
		}
	}
	return p.between(enter, leave), err
}

// between returns the code of the region, which is entered and left by edges.
func (p *part) between(enter, leave []flow.Edge) *sir.Code {
	var blocks []int
	var ends []uint64
	for b := range p.Blocks {
		if p.in[b] {
			blocks = append(blocks, b)
			ends = append(ends, p.leavesFunction(b)...)
		}
	}
	c := &sir.Code{Ranges: p.ranges(blocks), Enter: p.edges(enter), Leave: p.edges(leave)}
	for _, e := range enter {
		if e.From != flow.Outside && p.either[e.From] {
			c.Uncounted = fmt.Sprintf("whether control comes from other code to %#x, or from the region itself, depends on the way there", p.Blocks[e.To].Start)
			return c
		}
	}
	p.measure(c, enter, leave, ends, p.holds)
	if p.empty {
		c.Exits, c.Untimed = nil, cmp.Or(c.Untimed, "no code of its own is left")
	}
	return c
}

// leavesFunction returns the last instruction of a block, if the function is left there.
func (p *part) leavesFunction(b int) []uint64 {
	code := p.code(b)
	last := &code[len(code)-1]
	if len(p.Blocks[b].Succ) == 0 && (last.Op == x86asm.RET || last.Op == x86asm.JMP) {
		return []uint64{last.addr}
	}
	return nil
}

// divided returns the graph with blocks that begin at more instructions.
func (g *graph) divided(at []bool) (*graph, error) {
	d := &graph{insts: g.insts, parts: g.parts, starts: make([]int32, len(g.insts))}
	blocks, edges := len(g.Blocks), 0
	for b, code := range g.pieces {
		edges += len(g.Blocks[b].Succ)
		for i := code.from + 1; i < code.to; i++ {
			if at[i] {
				blocks++
			}
		}
	}
	d.Blocks, d.pieces = make([]flow.Block, 0, blocks), make([]instPiece, 0, blocks)
	number := make([]int, len(g.Blocks)) // of the first piece of each block
	for b, code := range g.pieces {
		number[b] = len(d.Blocks)
		d.begin(code.from)
		for i := code.from + 1; i < code.to; i++ {
			if at[i] {
				d.begin(i)
			}
		}
	}
	succ := make([]int, 0, edges+blocks)
	for b := range g.Blocks {
		piece, last := number[b], blocks-1
		if b+1 < len(number) {
			last = number[b+1] - 1
		}
		for ; piece < last; piece++ {
			succ = append(succ, piece+1)
			d.Blocks[piece].Succ = succ[len(succ)-1 : len(succ) : len(succ)]
			d.end(piece, d.pieces[piece+1].from-1, g.pieces[b].from)
		}
		from := len(succ)
		for _, s := range g.Blocks[b].Succ {
			succ = append(succ, number[s])
		}
		d.Blocks[last].Succ = succ[from:len(succ):len(succ)]
		d.end(last, g.pieces[b].to-1, g.pieces[b].from)
	}
	return d, d.Connect()
}
