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
type mark struct{ region, last bool }

// newPart finds the code of a region in a function. Between two pieces of it in a block, statements of other
// regions begin: they belong to the same execution, unless the pieces are apart.
func newPart(t *tree, marks map[uint64]mark, apart bool) (*part, error) {
	p := &part{tree: t, empty: true}
	first, on, cuts := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for b := range t.Blocks {
		code := t.code(b)
		marked, pieces := piecesOf(code, marks)
		if n := len(pieces); n > 1 && !apart {
			pieces = [][2]int{{pieces[0][0], pieces[n-1][1]}}
		}
		if len(pieces) > 0 && pieces[0][0] == marked {
			pieces[0][0], marked = 0, 0 // what is before leads only to the region
		}
		p.most = max(p.most, len(pieces))
		for _, piece := range pieces {
			first[code[piece[0]].addr], cuts[code[piece[0]].addr] = true, true
			if piece[1] < len(code) {
				cuts[code[piece[1]].addr] = true
			}
			for _, inst := range code[piece[0]:piece[1]] {
				p.empty = p.empty && !marks[inst.addr].last
			}
		}
		if marked > 0 { // no statement begins at the beginning of the block
			on[code[0].addr] = true
			if marked < len(code) {
				cuts[code[marked].addr] = true
			}
		}
	}
	divided := *t
	var err error
	if divided.graph, err = t.divided(cuts); err != nil {
		return nil, err
	}
	p.tree = &divided
	p.in, p.either = make([]bool, len(p.Blocks)), make([]bool, len(p.Blocks))
	for b := range p.Blocks {
		p.in[b] = first[p.Blocks[b].Start]
	}
	p.goOn(on)
	return p, nil
}

// piecesOf returns the first instruction of a block at which a statement begins, which is the length of the block if
// there is none, and the pieces of the block that belong to the region: from one of its statements to one of
// another region.
func piecesOf(code []instruction, marks map[uint64]mark) (marked int, pieces [][2]int) {
	marked = len(code)
	open := false
	for i := range code {
		m, ok := marks[code[i].addr]
		if !ok {
			continue
		}
		marked = min(marked, i)
		switch {
		case m.region && !open:
			pieces = append(pieces, [2]int{i, len(code)})
		case !m.region && open:
			pieces[len(pieces)-1][1] = i
		}
		open = m.region
	}
	return marked, pieces
}

// goOn finds where the region goes on in blocks at whose beginning no statement begins.
func (p *part) goOn(on map[uint64]bool) {
	any := func(b int, is []bool) bool {
		return slices.ContainsFunc(p.Blocks[b].Pred, func(from int) bool { return is[from] })
	}
	var open []int
	for b := range p.Blocks {
		if on[p.Blocks[b].Start] && b > 0 {
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
func (g *graph) divided(at map[uint64]bool) (*graph, error) {
	d := &graph{insts: g.insts, parts: g.parts}
	number := make([]int, len(g.Blocks)) // of the first piece of each block
	for b := range g.Blocks {
		number[b] = len(d.Blocks)
		for i, inst := range g.code(b) {
			if i > 0 && !at[inst.addr] {
				continue
			}
			d.Blocks = append(d.Blocks, flow.Block{Start: inst.addr})
			d.first = append(d.first, g.first[b]+i)
		}
	}
	for b := range g.Blocks {
		next := len(d.Blocks)
		if b+1 < len(number) {
			next = number[b+1]
		}
		for piece := number[b]; piece < next-1; piece++ {
			d.Blocks[piece].Succ = []int{piece + 1}
			d.end(piece, d.Blocks[piece+1].Start)
		}
		for _, s := range g.Blocks[b].Succ {
			d.Blocks[next-1].Succ = append(d.Blocks[next-1].Succ, number[s])
		}
		d.end(next-1, g.Blocks[b].End)
	}
	return d, d.Connect()
}
