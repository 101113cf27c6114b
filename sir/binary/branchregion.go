package binary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/flow"
)

// Branch returns the code of a branch of an if or a switch, which a source file has and the program was built from.
// An execution begins each time a test of the condition leads into the branch, or the branch above it in a
// switch goes on to it. The region has the branch's id.
//
// The code is found by the positions of the branch, in all functions. It is refused unless each way into it is
// from a test in the condition, to the first statement of the branch, and all its code is behind such a test: the
// compiler may have merged, moved or copied it.
//
// Without a choice the branch is a statement or a block, which any code may lead to. See entrance.
//
// The error is a *sir.LineError if the program has no code of the file, or that of ctx. Callers share the
// region and must not modify it.
func (im *Image) Branch(ctx context.Context, choice, branch *sir.Region) (*sir.Region, error) {
	k := newFork(choice, branch)
	key := fmt.Sprintf("\x01%s %s %v", branch.ID, branch.File, *k)
	if known, ok := im.innerLines.find(key); ok {
		return &known[0], nil
	}
	f, err := im.fileLike(ctx, branch.File)
	if err != nil {
		return nil, err
	}
	k.file = f.path
	m := newLineMaker(ctx, im, f.path)
	m.every = true
	r := m.branch(f, k)
	r.ID, r.Kind, r.Name, r.Form, r.Line = branch.ID, branch.Kind, branch.Name, branch.Form, branch.Line
	r.Code.Column, r.Code.EndLine = branch.Code.Column, branch.Code.EndLine
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	im.innerLines.enter(key, []sir.Region{r})
	return &r, nil
}

// fileLike finds the file of the source with a path, or with the longest end of it: programs are built in other folders.
func (im *Image) fileLike(ctx context.Context, path string) (f *sourceFile, err error) {
	for name := path; ; {
		if f, err = im.sourceFile(ctx, name); err == nil || ctx.Err() != nil {
			return f, err
		}
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return nil, err
		}
		name = rest
	}
}

// branch finds the code of a branch in all functions that have code of the whole choice.
func (m *lineMaker) branch(f *sourceFile, k *fork) sir.Region {
	r := sir.Region{File: f.path, Code: &sir.Code{}}
	var rows []lineRow
	for line := k.whole.line; line <= k.whole.endLine; line++ {
		for _, row := range f.lines[line] {
			if p := (position{f.path, line, row.column}); p.column == 0 || k.whole.holds(p) {
				rows = append(rows, row)
			}
		}
	}
	var gone absence
	var of string // a function with its code
	for rows = sortRows(rows); len(rows) > 0; {
		owner, rest, err := m.split(rows)
		rows = rest
		var c *sir.Code
		if err == nil && owner != nil {
			c, err = m.branchIn(owner, k, &gone)
		}
		switch {
		case err != nil:
			r.Code.Uncounted = cmp.Or(r.Code.Uncounted, err.Error())
		case owner != nil:
			if k.alone && len(c.Enter) > 0 {
				r.Code.Uncounted = cmp.Or(r.Code.Uncounted, k.severalFunctions(of, owner.f.name))
				of = owner.f.name
			}
			join(r.Code, c)
		}
	}
	switch {
	case r.Code.Uncounted != "":
	case len(r.Code.Entries) > 0:
		r.Code.Uncounted = gone.copied
	default:
		r.Code.Uncounted = cmp.Or(gone.moved, "the program has no code at its positions: the compiler removed the "+k.what()+", or merged it with other code")
	}
	finish(&r)
	return r
}

// absence says why functions with code of the condition have none of the branch: they execute it by a conditional
// move, or the compiler made a copy of the condition that lacks the branch.
type absence struct{ moved, copied string }

// branchIn finds the code of a branch in one function.
func (m *lineMaker) branchIn(o *owner, k *fork, gone *absence) (*sir.Code, error) {
	b := branchPart{of: o, fork: k}
	if strings.HasPrefix(o.producer, "Go ") {
		return nil, errGo
	}
	switch err := b.locate(m); {
	case err != nil:
		return nil, err
	case b.isOutlined():
		return &sir.Code{}, nil
	case !b.plain && b.alone:
		return nil, errOptimisedStatement
	case !b.plain && !strings.HasPrefix(o.producer, "GNU "):
		return nil, errOptimised
	}
	if moves := b.conditionalMove(); moves != 0 && gone.moved == "" {
		gone.moved = fmt.Sprintf("the compiler made a conditional move of it, at %#x", moves)
	}
	marks, err := o.marks(func(s statement) bool { return b.lineOf(s) > 0 })
	if err != nil {
		return nil, err
	}
	if err := o.divide(); err != nil {
		return nil, err
	}
	b.part = o.newPart(marks, true)
	if why := b.misplaced(); why != "" {
		return &sir.Code{Uncounted: cmp.Or(gone.moved, why)}, nil
	}
	if !slices.Contains(b.in, true) {
		if !b.plain {
			gone.copied = cmp.Or(gone.copied, b.incomplete())
		}
		return &sir.Code{}, nil
	}
	c := b.region()
	enter, leave := b.Borders(b.holds)
	if b.alone {
		c.Uncounted = cmp.Or(c.Uncounted, b.entrance(enter))
		return c, nil
	}
	if b.head > 0 && slices.ContainsFunc(leave, b.leadsToHead) {
		return nil, errSeveralLines
	}
	b.deciding = map[int]bool{}
	for _, e := range enter {
		if why := b.wrongEntry(e); c.Uncounted == "" && why != "" {
			c.Uncounted = cmp.Or(gone.moved, why)
		}
	}
	if !b.plain && c.Uncounted == "" {
		c.Uncounted = b.incomplete()
	}
	return c, nil
}

// errOptimised: LLVM merges code of several inlined calls, and does not say of what lines it is then.
var errOptimised = errors.New("its code is optimised, and only gcc says of all optimised code where in the source it is from; compile with gcc or without optimisation")

var errGo = errors.New("the compiler of Go does not say at which columns code is; name the line of its first statement, PROGRAM:FILE:LINE")

// errSeveralLines: the code of such a condition looks like that of the branch.
var errSeveralLines = errors.New("its condition is on several lines, and the compiler does not tell it from the branch")

// branchPart is the code of a branch in one function.
type branchPart struct {
	*fork
	*part
	of       *owner
	begun    map[uint64][]statement // the statements that begin at each address
	calls    []instance             // what is inlined into the function
	plain    bool                   // the compiler did not optimise the function
	deciding map[int]bool           // the blocks with tests of the condition that lead into the branch
	columns  bool                   // the line table has columns
	first    int                    // the first line of the branch at which a statement begins
}

// locate finds the positions of the function's instructions.
func (b *branchPart) locate(m *lineMaker) (err error) {
	if b.of.places == nil {
		if b.of.places, err = m.im.lines.positions(m.ctx, b.of.insts); err != nil {
			return err
		}
		b.of.divided = nil
	}
	if b.calls, err = m.instancesOf(b.of); err != nil {
		return err
	}
	d, err := m.im.lines.data.get(m.ctx)
	if err != nil {
		return err
	}
	of, err := m.im.described(m.ctx, d, b.madeOf(m.im).addr)
	if err != nil {
		return err
	}
	b.plain = unoptimised(b.of.producer, of)
	b.begun = make(map[uint64][]statement, len(b.of.statements))
	for _, s := range b.of.statements {
		b.begun[s.addr] = append(b.begun[s.addr], s)
		b.columns = b.columns || s.column > 0
		brace := s.line == b.branch.line && s.column == b.branch.column && b.branch.endLine > s.line && !b.word
		if line := b.lineOf(s); line > 0 && !brace && (b.first == 0 || line < b.first) {
			b.first = line
		}
	}
	b.first = cmp.Or(b.first, b.branch.line)
	if !b.columns && (b.alone || b.branch.endLine-b.branch.line < 2) {
		return fmt.Errorf("the debug information has no columns, and line %d may have other code than the %s", b.branch.line, b.what())
	}
	return nil
}

// instancesOf returns what is inlined into a function.
func (m *lineMaker) instancesOf(o *owner) (list []instance, err error) {
	d, err := m.im.lines.data.get(m.ctx)
	if d == nil {
		return nil, err
	}
	for _, u := range d.unitsAt(o.f.addr) {
		code, err := m.im.lines.codeOf(m.ctx, d, u)
		if err != nil {
			return nil, err
		}
		for _, i := range code.instances {
			if i.call.line > 0 && o.covers(i.low()) {
				list = append(list, i)
			}
		}
	}
	if len(list)*len(o.insts) > mostComparisons {
		return nil, errLargeFunction
	}
	return list, nil
}

// find returns the line of code with a position, or of what it is inlined into, if that has a property, or 0.
func (b *branchPart) find(addr uint64, p position, property func(position) bool) int {
	if p.file == b.file && property(p) {
		return p.line
	}
	for _, i := range b.calls {
		if i.call.file == b.file && property(i.call) && i.holds(addr) {
			return i.call.line
		}
	}
	return 0
}

func (b *branchPart) is(addr uint64, p position, property func(position) bool) bool {
	return b.find(addr, p, property) > 0
}

// lineOf returns the line of the branch to which a statement belongs, 0 if it is not in the branch.
func (b *branchPart) lineOf(s statement) int {
	return b.find(s.addr, position{s.file, s.line, s.column}, b.branch.holds)
}

// tested reports whether an instruction is in the condition. gfortran writes a nop with some position behind constructs.
func (b *branchPart) tested(n int) bool {
	i := &b.of.insts[n]
	return b.is(i.addr, b.of.places[n], b.tests) && b.of.whole(i).Op != x86asm.NOP
}

// leadsToHead reports whether an edge leads to the condition of an ELSE IF.
func (b *branchPart) leadsToHead(e flow.Edge) bool {
	code := b.pieces[e.To]
	for n := code.from; n < code.to; n++ {
		if p := b.of.places[n]; p.file == b.file && p.line == b.head {
			return true
		}
	}
	return false
}

// conditionalMove returns the address of a conditional move in the condition or the branch, 0 if there is none.
func (b *branchPart) conditionalMove() uint64 {
	for n := range b.of.insts {
		i := &b.of.insts[n]
		if (b.tested(n) || b.is(i.addr, b.of.places[n], b.branch.holds)) && strings.HasPrefix(b.of.whole(i).Op.String(), "CMOV") {
			return i.addr
		}
	}
	return 0
}

// misplaced says which code of the choice is not where it would be if the compiler had kept the branch.
func (b *branchPart) misplaced() string {
	block := -1 // of the divided graph
	for n := range b.of.insts {
		if s := b.part.starts[n]; s > 0 {
			block = int(s) - 1
		}
		i := &b.of.insts[n]
		switch {
		case !b.in[block] && b.is(i.addr, b.of.places[n], b.branch.holds):
			return fmt.Sprintf("the compiler moved code of it to %#x", i.addr)
		case b.in[block] && b.tested(n):
			return fmt.Sprintf("the compiler moved code of its condition into it, to %#x", i.addr)
		}
	}
	return b.copied()
}

// copied says which code of the condition leads to no test of it.
func (b *branchPart) copied() string {
	t := b.of.tree
	var tests, others []int
	for block := range t.Blocks {
		piece := t.pieces[block]
		switch {
		case len(t.Blocks[block].Succ) > 1 && b.tested(piece.to-1):
			tests = append(tests, block)
		default:
			for n := piece.from; n < piece.to; n++ {
				if b.tested(n) {
					others = append(others, block)
					break
				}
			}
		}
	}
	before, behind := make([]bool, len(t.Blocks)), make([]bool, len(t.Blocks)) // a test, on each way
	for _, test := range tests {
		behind[test] = true
		for block := test; block >= 0 && !before[block]; block = t.dom[block] {
			before[block] = true
		}
	}
	for _, block := range others {
		var way []int
		at := block
		for ; at >= 0 && !behind[at] && !before[at]; at = t.dom[at] {
			way = append(way, at)
		}
		if at < 0 || !behind[at] && at != block {
			return fmt.Sprintf("the compiler made code without a branch of its condition, at %#x", t.Blocks[block].Start)
		}
		for _, passed := range way {
			behind[passed] = true
		}
	}
	return ""
}

// wrongEntry says why an edge into the branch is not an execution of it, "" if it is one.
func (b *branchPart) wrongEntry(e flow.Edge) string {
	at := b.Blocks[e.To].Start
	switch {
	case !b.decided(e, map[int]bool{}):
		return fmt.Sprintf("control comes to its code at %#x from other code than its condition: a goto, or code that the compiler merged or copied", at)
	case !b.atBeginning(e.To):
		return fmt.Sprintf("control comes into its middle at %#x: the compiler merged its code or its condition with others", at)
	}
	return ""
}

// decided reports whether an edge is taken only after a test of the condition, or from the branch above.
func (b *branchPart) decided(e flow.Edge, seen map[int]bool) bool {
	if e.From == flow.Outside || seen[e.From] {
		return false
	}
	seen[e.From] = true
	from := &b.Blocks[e.From]
	last := numberAt(b.of.parts, from.Last)
	switch {
	case b.is(from.Last, b.of.places[last], func(p position) bool { return hold(b.above, p) }):
		return true
	case len(from.Succ) > 1:
		b.deciding[e.From] = true
		return b.isTest(e.From) && slices.ContainsFunc(from.Succ, func(to int) bool { return to != e.To })
	case len(from.Pred) == 0 || e.From == 0 || b.in[e.From] || b.elsewhere(e.From):
		return false
	}
	return !slices.ContainsFunc(from.Pred, func(before int) bool { return !b.decided(flow.Edge{From: before, To: e.From}, seen) })
}

// isTest reports whether a block ends with a test of the condition. LLVM gives the jump of a switch no position.
func (b *branchPart) isTest(block int) bool {
	is, last := &b.Blocks[block], b.pieces[block].to-1
	if len(is.Succ) > 2 && len(is.Pred) == 1 && b.of.places[last].line == 0 {
		block = is.Pred[0]
		is, last = &b.Blocks[block], b.pieces[block].to-1
	}
	return len(is.Succ) > 1 && b.tested(last)
}

// elsewhere reports whether a block has code of other branches, or a statement that is not in the condition.
func (b *branchPart) elsewhere(block int) bool {
	code := b.pieces[block]
	for n := code.from; n < code.to; n++ {
		if b.is(b.of.insts[n].addr, b.of.places[n], func(p position) bool { return hold(b.branches, p) }) {
			return true
		}
	}
	return slices.ContainsFunc(b.begun[b.Blocks[block].Start], func(s statement) bool {
		return !b.is(s.addr, position{s.file, s.line, s.column}, b.tests)
	})
}

// atBeginning reports whether the first statement of the branch begins at a block, or behind it without a
// test between.
func (b *branchPart) atBeginning(block int) bool {
	for range len(b.Blocks) {
		for _, s := range b.begun[b.Blocks[block].Start] {
			switch {
			case b.is(s.addr, position{s.file, s.line, s.column}, func(p position) bool { return hold(b.nested, p) }):
				return false
			case b.lineOf(s) == b.first:
				return true
			}
		}
		succ := b.Blocks[block].Succ
		if len(succ) != 1 || !b.in[succ[0]] {
			return false
		}
		block = succ[0]
	}
	return false
}
