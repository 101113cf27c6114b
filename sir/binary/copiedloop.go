package binary

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/flow"
)

// places has where the code of positions is in a function.
type places struct {
	begun    [][]position         // of each block: the statements that begin there
	blocks   map[position][]int   // where statements of a position begin
	branches map[sourceLine][]int // the blocks that end with a branch of a line
}

// placesOf finds where statements begin.
func (t *tree) placesOf(statements []statement) *places {
	at := &places{make([][]position, len(t.Blocks)), map[position][]int{}, map[sourceLine][]int{}}
	for _, s := range statements {
		if b := t.blockWith(s.addr); b >= 0 {
			p := position{s.file, s.line, s.column}
			at.begun[b] = append(at.begun[b], p)
			at.blocks[p] = append(at.blocks[p], b)
		}
	}
	for b := range t.Blocks {
		if p := t.at(t.Blocks[b].Last); p.line > 0 && len(t.Blocks[b].Succ) > 1 {
			line := sourceLine{p.file, p.line}
			at.branches[line] = append(at.branches[line], b)
		}
	}
	return at
}

// blockWith returns the block with an instruction, or -1.
func (t *tree) blockWith(addr uint64) int {
	i := t.instAt(addr)
	for i > 0 && t.starts[i] == 0 {
		i--
	}
	if i < 0 {
		return -1
	}
	return int(t.starts[i]) - 1
}

// unlikeSource says why executions of a loop in optimised code are not counted: there are signs that the compiler copied
// its test, or changed where control enters it. guards are the edges by which known tests before the loop skip it.
func (l *loopRegion) unlikeSource(control position, guards []flow.Edge) error {
	if !l.optimised(control) {
		return nil
	}
	if err := l.copiedTest(control, guards); err != nil {
		return err
	}
	if err := l.wrongBeginning(control); err != nil {
		return err
	}
	if err := l.foldedExecution(control, guards); err != nil || l.llvm {
		return err
	}
	return l.copiedBody(control)
}

// optimised reports whether the compiler may have changed the loop, and says where in the source its code is from.
func (l *loopRegion) optimised(control position) bool {
	return !l.plain && l.where != nil && control.line > 0
}

// copiedTest finds a branch of the loop's line outside of it that is no known test, and may skip it, or several places
// outside of it at which its test begins. LLVM does not say where a test begins. A check whose failure ends the program is no test.
func (l *loopRegion) copiedTest(control position, guards []flow.Edge) error {
	const most = 64 // branches that are looked at
	outside := slices.DeleteFunc(slices.Clone(l.where.branches[sourceLine{control.file, control.line}]), func(b int) bool {
		return l.Holds(b) || slices.ContainsFunc(guards, func(e flow.Edge) bool { return e.From == b })
	})
	for i, b := range outside {
		if i == most || slices.ContainsFunc(l.Blocks[b].Succ, func(to int) bool { return l.returns[to] && !l.reaches(to, b) }) {
			return fmt.Errorf("the compiler made a copy of its test, at %#x", l.Blocks[b].Last)
		}
	}
	if l.llvm {
		return nil
	}
	if begin := l.beginning(control, false); len(begin) > 1 {
		return fmt.Errorf("the compiler made copies of its test, one at %#x", l.Blocks[begin[1]].Start)
	}
	return nil
}

// errInner: the branch with the loop's position does not end it.
var errInner = errors.New("its test does not leave it: it may be several loops of the source")

// wrongBeginning says why control does not enter the loop at the beginning of its test or its body.
func (l *loopRegion) wrongBeginning(control position) error {
	head := l.Heads[0]
	begun := l.where.begun[head]
	tested, left, jumps := false, false, false
	for _, b := range l.Body {
		code := l.code(b)
		switch {
		case l.at(l.Blocks[b].Last) != control:
		case len(l.Blocks[b].Succ) > 1:
			tested = true
			left = left || slices.ContainsFunc(l.Blocks[b].Succ, func(to int) bool { return !l.Holds(to) })
		default:
			jumps = jumps || !l.llvm && code[len(code)-1].Op == x86asm.JMP
		}
	}
	first := l.first(head)
	switch {
	case !tested && jumps:
		return errShared
	case tested && !left:
		return errInner
	case !onLine(first, control), !l.llvm && len(begun) > 0 && !onLine(begun[0], control):
		return nil
	case !l.llvm && len(begun) == 0, l.hasBefore(first, control):
		return fmt.Errorf("control comes into the middle of its test, at %#x", l.Blocks[head].Start)
	}
	return nil
}

func onLine(p, q position) bool { return p.line == q.line && p.file == q.file }

// first returns the first known position in a block.
func (l *loopRegion) first(b int) position {
	for _, inst := range l.code(b) {
		if p := l.at(inst.addr); p.line > 0 {
			return p
		}
	}
	return position{}
}

// hasBefore reports whether the loop has code of its test that is before a position.
func (l *loopRegion) hasBefore(first, control position) bool {
	for _, b := range l.Body {
		for _, inst := range l.code(b) {
			if p := l.at(inst.addr); b != l.Heads[0] && onLine(p, control) && p != control && p.column < first.column {
				return true
			}
		}
	}
	return false
}

// copiedBody finds a statement of the loop, behind the line of its test, that begins outside of it too.
func (l *loopRegion) copiedBody(control position) error {
	end := l.lastLine(control.file)
	seen := map[position]bool{}
	for _, b := range l.Body {
		for _, p := range l.where.begun[b] {
			if seen[p] || p.file != control.file || p.line <= control.line || p.line > end {
				continue
			}
			seen[p] = true
			for _, other := range l.where.blocks[p] {
				if !l.Holds(other) {
					return fmt.Errorf("the compiler made a copy of its body, at %#x", l.Blocks[other].Start)
				}
			}
		}
	}
	return nil
}

// unlikeIteration says why iterations of a loop in optimised code are not counted. tests are the blocks at its beginning that are
// its test.
func (l *loopRegion) unlikeIteration(control position, tests []int) error {
	if !l.optimised(control) {
		return nil
	}
	if len(tests) == 0 {
		if err := l.mixed(control); err != nil {
			return err
		}
	}
	enter, _ := l.iterations(tests)
	for _, e := range enter {
		if start := l.Blocks[e.To].Start; l.calledOn(control, start) {
			return fmt.Errorf("its code at %#x is of a function that may be inlined into its test", start)
		}
	}
	if err := l.foldedIteration(control); err != nil {
		return err
	}
	if l.llvm {
		return cmp.Or(l.unrolled(control), l.copiedBody(control))
	}
	if inside := l.beginning(control, true); len(inside) > 1 && len(tests) == 0 {
		for _, b := range inside {
			if b != l.Heads[0] && !l.restartsFrom(b, control) {
				return fmt.Errorf("the compiler made a copy of its test in it, at %#x", l.Blocks[b].Start)
			}
		}
	}
	if err := l.copiedBeginning(tests); err != nil {
		return err
	}
	return l.copiedBody(control)
}

// copiedBeginning finds the first statement of the body elsewhere in the loop, behind other statements: gcc knows the outcome of a test
// behind some values, and leaves the test out there. Statements of a macro have one position.
func (l *loopRegion) copiedBeginning(tests []int) error {
	enter, _ := l.iterations(tests)
	for _, e := range enter {
		if len(l.where.begun[e.To]) == 0 {
			continue
		}
		first := l.where.begun[e.To][0]
		for _, b := range l.beginning(first, true) {
			if b != e.To && l.othersBetween(e.To, b, first) {
				return fmt.Errorf("the compiler made a copy of the beginning of its body in it, at %#x", l.Blocks[b].Start)
			}
		}
	}
	return nil
}

// othersBetween reports whether other statements than those with a position begin on the way from a block to another one, or whether there
// are other ways to it.
func (l *loopRegion) othersBetween(from, to int, p position) bool {
	for b := l.dom[to]; b >= 0; b = l.dom[b] {
		if slices.ContainsFunc(l.where.begun[b], func(q position) bool { return q != p }) {
			return true
		}
		if b == from {
			return false
		}
	}
	return true
}

// restartsFrom reports whether the loop begins again behind a test, or the test goes on there.
func (l *loopRegion) restartsFrom(b int, control position) bool {
	return !slices.ContainsFunc(l.Blocks[b].Succ, func(to int) bool {
		for range l.Body {
			if to == l.Heads[0] || !l.Holds(to) || onLine(l.at(l.Blocks[to].Last), control) {
				return false
			}
			if len(l.Blocks[to].Succ) != 1 {
				return true
			}
			to = l.Blocks[to].Succ[0]
		}
		return true
	})
}

// beginning returns the blocks inside or outside of the loop in which a statement with a position begins.
func (l *loopRegion) beginning(p position, inside bool) []int {
	blocks := slices.DeleteFunc(slices.Clone(l.where.blocks[p]), func(b int) bool { return l.Holds(b) != inside })
	slices.Sort(blocks)
	return slices.Compact(blocks)
}

// mixed says why the first block of a loop that seems to begin with its body may be a test.
func (l *loopRegion) mixed(control position) error {
	head := l.Heads[0]
	start := l.Blocks[head].Start
	if err := l.wrongBeginning(control); err != nil {
		return err
	}
	begun := l.where.begun[head]
	repeats := slices.ContainsFunc(l.Back(&l.Graph), func(e flow.Edge) bool { return e.From == head })
	switch {
	case l.llvm && l.leaves(head) && l.at(l.Blocks[head].Last) == control && !repeats,
		l.llvm && onLine(l.first(head), control), !l.llvm && len(begun) > 0 && onLine(begun[0], control):
		return fmt.Errorf("whether its code at %#x is its test or the beginning of its body is not known", start)
	}
	return nil
}

// calledOn reports whether an instruction is of a function that is inlined into a line.
func (l *loopRegion) calledOn(at position, addr uint64) bool {
	return slices.ContainsFunc(l.inlined, func(r sir.Region) bool {
		holds := func(c sir.Range) bool { return c.Low <= addr && addr < c.High }
		return r.File == at.file && r.Line == at.line && slices.ContainsFunc(r.Code.Ranges, holds)
	})
}

// unrolled finds signs that LLVM made copies of the body in the loop: its first statement is in another block too, or it
// is twice in the first block, or the loop has a second test, and code of its body is outside of it.
func (l *loopRegion) unrolled(control position) error {
	first := l.first(l.Heads[0])
	for _, b := range l.Body {
		if b != l.Heads[0] && slices.Contains(l.where.begun[b], first) {
			return fmt.Errorf("the compiler made a copy of the beginning of its body in it, at %#x", l.Blocks[b].Start)
		}
	}
	times, before := 0, position{}
	for _, inst := range l.code(l.Heads[0]) {
		p := l.at(inst.addr)
		if p == first && p != before {
			times++
		}
		before = p
	}
	if times > 1 || l.copiedTest(control, l.guards(control)) != nil {
		return l.copiedBody(control)
	}
	return nil
}
