package binary

import (
	"errors"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/flow"
)

// loopRegion finds what a loop of the code is in the source.
//
// The position of a loop is that of the branch that leaves or restarts it. An execution is an
// entry into the loop, or an edge by which a test before the loop skips it: compilers move the
// test of a loop behind its body, and test once before. An iteration is an edge from the tests of
// the loop into its body. A loop that does not begin with tests has an iteration each time control
// reaches its first block.
type loopRegion struct {
	*tree
	*flow.Loop
}

func (l *loopRegion) region() sir.Region {
	p := l.control()
	r := sir.Region{Kind: sir.Loop, File: p.file, Line: p.line, Entry: l.Blocks[l.Heads[0]].Start, Code: &sir.Code{
		Column: p.column, EndLine: l.lastLine(p.file), Irreducible: l.Irreducible(), Ranges: l.ranges(l.Body),
	}}
	for _, c := range r.Code.Ranges {
		r.Size += c.High - c.Low
	}
	skip := l.guards(p)
	enter, leave := append(l.Enter(&l.Graph), skip...), append(l.Leave(&l.Graph), skip...)
	r.Code.Enter, r.Code.Leave = l.edges(enter), l.edges(leave)
	l.measure(r.Code, enter, leave, nil, l.Holds)
	_, _, err := l.plainTests()
	if !errors.Is(err, errShared) { // without its tests its executions are known
		err = l.entersAtCall(r.Code)
	}
	if err == nil {
		err = l.unlikeSource(p, skip)
	}
	refuse(r.Code, err)
	return r
}

// body returns the region of the loop's iterations, none for an irreducible loop.
func (l *loopRegion) body() []sir.Region {
	if l.Irreducible() {
		return nil
	}
	p := l.control()
	tests, err := l.tests(p)
	r := sir.Region{Name: string(sir.Body), Kind: sir.Body, File: p.file, Line: p.line, Code: &sir.Code{Column: p.column, EndLine: l.lastLine(p.file)}}
	var blocks []int
	for _, b := range l.Body {
		if !slices.Contains(tests, b) {
			blocks = append(blocks, b)
		}
	}
	if err == nil {
		err = l.unlikeIteration(p, tests)
	}
	enter, leave := l.iterations(tests)
	r.Code.Ranges = l.ranges(blocks)
	r.Code.Enter, r.Code.Leave = l.edges(enter), l.edges(leave)
	r.Entry = r.Code.Ranges[0].Low
	for _, c := range r.Code.Ranges {
		r.Size += c.High - c.Low
	}
	refuse(r.Code, err)
	if err == nil {
		l.measure(r.Code, enter, leave, nil, func(b int) bool { return slices.Contains(blocks, b) })
	}
	return []sir.Region{r}
}

// refuse removes where a region is counted, if there is an error.
func refuse(c *sir.Code, err error) {
	if err != nil {
		c.Entries, c.When, c.Exits, c.SharedExits = nil, nil, nil, false
		c.Uncounted, c.Untimed = err.Error(), err.Error()
	}
}

// iterations returns the edges by which iterations begin and end.
func (l *loopRegion) iterations(tests []int) (enter, leave []flow.Edge) {
	isTest := func(b int) bool { return slices.Contains(tests, b) }
	for _, b := range l.Body {
		for _, to := range l.Blocks[b].Succ {
			e := flow.Edge{From: b, To: to}
			switch inside := l.Holds(to); {
			case isTest(b) && inside && !isTest(to):
				enter = append(enter, e)
			case !isTest(b) && (!inside || isTest(to) || to == l.Heads[0]):
				leave = append(leave, e)
			}
		}
	}
	if len(tests) == 0 {
		enter = append(l.Enter(&l.Graph), l.Back(&l.Graph)...)
	}
	return enter, leave
}

var errOneLine = errors.New("the tests of the loop and its body are on one line and cannot be distinguished")

// tests returns the blocks at the beginning of the loop that only test whether it goes on.
func (l *loopRegion) tests(control position) ([]int, error) {
	if tests, known, err := l.plainTests(); known {
		return tests, err
	}
	if l.golang {
		return l.testsOfGo()
	}
	head := l.Heads[0]
	if len(l.Body) == 1 || !l.isTest(head, control) || slices.ContainsFunc(l.Back(&l.Graph), l.restarts) {
		return nil, nil
	}
	tests := []int{head}
	for i := 0; i < len(tests); i++ {
		for _, to := range l.Blocks[tests[i]].Succ {
			if l.Holds(to) && !slices.Contains(tests, to) && control.line > 0 && l.isTest(to, control) {
				tests = append(tests, to)
			}
		}
	}
	if len(tests) > 1 && l.onOneLine(control) {
		return nil, errOneLine
	}
	if len(tests) == len(l.Body) {
		return nil, errOneLine
	}
	return tests, nil
}

// isTest reports whether a block consists of code of the loop's line, and ends with a branch that may
// leave the loop.
func (l *loopRegion) isTest(b int, control position) bool {
	if !l.leaves(b) {
		return false
	}
	for _, inst := range l.code(b) {
		if p := l.at(inst.addr); control.line > 0 && p.line > 0 && (p.line != control.line || p.file != control.file) {
			return false
		}
	}
	return true
}

// leaves reports whether a block ends with a branch that may leave the loop. A check whose failure
// ends the program, such as that of an index, does not count.
func (l *loopRegion) leaves(b int) bool {
	succ := l.Blocks[b].Succ
	return len(succ) == 2 && slices.ContainsFunc(succ, func(s int) bool { return !l.Holds(s) && l.returns[s] })
}

// restarts reports whether an edge back to the head shows that the loop has no test of its own at the
// beginning, as while (1). gcc makes an unconditional jump backwards only for such a loop: it puts the test of
// another loop behind its body. LLVM makes such a jump for both kinds; in a loop with a test, the jump has
// the line of the test. A conditional branch without a line counts as such a jump.
func (l *loopRegion) restarts(e flow.Edge) bool {
	b := &l.Blocks[e.From]
	code := l.code(e.From)
	last := &code[len(code)-1]
	if last.Op == x86asm.JMP {
		same := l.at(last.addr).line > 0 && l.at(last.addr).line == l.at(l.Blocks[e.To].Last).line
		return l.Blocks[e.To].Start < b.End && !(l.llvm && same)
	}
	return len(b.Succ) > 1 && l.at(last.addr).line == 0
}

// onOneLine reports whether all code of the loop is on the line of its tests.
func (l *loopRegion) onOneLine(control position) bool {
	for _, b := range l.Body {
		for _, inst := range l.code(b) {
			if p := l.at(inst.addr); p.line > 0 && p.line != control.line {
				return false
			}
		}
	}
	return true
}

// control returns the position of the branch that decides whether the loop goes on: the test at
// its beginning, or the one that leads back to it. The branch at the end of a do-while loop is on the
// loop's last line.
func (l *loopRegion) control() position {
	var first, last position
	for _, h := range l.Heads {
		if p := l.at(l.Blocks[h].Last); l.leaves(h) && p.line > 0 && (first.line == 0 || p.compare(first) < 0) {
			first = p
		}
	}
	for _, e := range l.Back(&l.Graph) {
		if p := l.at(l.Blocks[e.From].Last); len(l.Blocks[e.From].Succ) > 1 && p.line > 0 && (last.line == 0 || p.compare(last) < 0) {
			last = p
		}
	}
	switch {
	case first.line == 0 && last.line == 0:
		return l.top()
	case first.line == 0, last.line > 0 && last.line == l.lastLine(last.file):
		return last
	case last.line > 0 && last.compare(first) < 0:
		return last
	}
	return first
}

// top returns the first position of a loop that no test leaves.
func (l *loopRegion) top() (top position) {
	for _, b := range l.Body {
		for _, inst := range l.code(b) {
			if p := l.at(inst.addr); p.line > 0 && (top.line == 0 || p.compare(top) < 0) {
				top = p
			}
		}
	}
	return top
}

// lastLine returns the greatest line of the loop in a file.
func (l *loopRegion) lastLine(file string) (last int) {
	for _, b := range l.Body {
		for _, inst := range l.code(b) {
			if p := l.at(inst.addr); p.file == file {
				last = max(last, p.line)
			}
		}
	}
	return last
}

// guards returns the edges by which tests before the loop skip it. Such a test has the position of
// the loop's own test, and is in the same loops.
func (l *loopRegion) guards(control position) (skip []flow.Edge) {
	if control.line == 0 || l.Irreducible() {
		return nil
	}
	for d := l.dom[l.Heads[0]]; d >= 0; d = l.dom[d] {
		if l.Parent >= 0 && !l.loops[l.Parent].Holds(d) {
			break
		}
		if len(l.Blocks[d].Succ) != 2 || l.at(l.Blocks[d].Last) != control || l.Holds(d) {
			continue
		}
		for _, to := range l.Blocks[d].Succ {
			if !l.reaches(to, d) {
				skip = append(skip, flow.Edge{From: d, To: to})
			}
		}
	}
	return skip
}

// reaches reports whether control can go from a block to the loop without passing the block without.
func (l *loopRegion) reaches(from, without int) bool {
	seen := map[int]bool{without: true}
	for todo := []int{from}; len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[b] {
			continue
		}
		if l.Holds(b) {
			return true
		}
		seen[b] = true
		todo = append(todo, l.Blocks[b].Succ...)
	}
	return false
}
