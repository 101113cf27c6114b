package binary

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mirador/sir"
)

// errShared: the machine code has one loop for two loops of the source.
var errShared = errors.New("another loop of the source begins at its first instruction, and the code does not tell them apart")

// plainTests returns the blocks with the condition of a loop that the compiler did not optimise, by the order in which it
// writes the parts of a loop. known is false if the order does not tell.
func (l *loopRegion) plainTests() (tests []int, known bool, err error) {
	if !l.plain || l.Irreducible() {
		return nil, false, nil
	}
	switch {
	case l.rust:
		tests, err = l.testsOfRust()
	case l.llvm && l.control().column == 0:
		return nil, true, errNoColumns
	case l.llvm:
		return l.keywordTests()
	case l.fortran:
		tests, err = l.testsOfDo()
	default:
		tests, err = l.testsBehindBody()
	}
	return tests, true, err
}

// testsBehindBody: gcc writes a condition that is tested before each iteration behind the body, so that control comes to it from
// lower addresses in the loop. It jumps back to the beginning of other loops. Behind the condition is code outside of the loop, and
// behind that may be the handlers of exceptions, which belong to the body.
func (l *loopRegion) testsBehindBody() (tests []int, err error) {
	head := l.Blocks[l.Heads[0]].Start
	forward, backward := false, false
	for _, e := range l.Back(&l.Graph) {
		if l.Blocks[e.From].Start < head {
			forward = true
		} else {
			backward = true
		}
	}
	switch {
	case forward && backward:
		return nil, errShared
	case backward:
		return nil, nil
	}
	end := head
	for _, b := range l.inOrder() {
		if l.Blocks[b].Start != end {
			break
		}
		end = l.Blocks[b].End
		tests = append(tests, b)
	}
	return tests, nil
}

// inOrder returns the blocks of the loop from its head on, in the order of their addresses.
func (l *loopRegion) inOrder() []int {
	blocks := l.blocksUpTo(^uint64(0))
	slices.SortFunc(blocks, func(a, b int) int { return cmp.Compare(l.Blocks[a].Start, l.Blocks[b].Start) })
	return blocks
}

// errUnknownDo: such as a loop without a body.
var errUnknownDo = errors.New("whether its test is before or behind its body, or in it, is not known")

// testsOfDo: gfortran writes the parts of a loop in the order of their execution, and jumps back at its end. That jump has the position
// of the word DO. The test has it too: before the body, or, if the number of iterations is computed before the loop, behind it.
func (l *loopRegion) testsOfDo() ([]int, error) {
	do, err := l.wordDo()
	if err != nil {
		return nil, err
	}
	first, guarded := l.first(l.Heads[0]), len(l.guards(do)) > 0
	for _, b := range l.inOrder() {
		switch last := l.at(l.Blocks[b].Last); {
		case last != do || !l.leaves(b):
			continue
		case guarded && l.jumpsBack(b):
			return nil, nil
		case guarded || l.jumpsBack(b):
			return nil, errUnknownDo
		}
		return l.blocksUpTo(l.Blocks[b].Start), nil
	}
	if first.line <= do.line {
		return nil, errUnknownDo
	}
	return nil, nil
}

// wordDo returns the position of the jumps that begin another iteration.
func (l *loopRegion) wordDo() (do position, err error) {
	jumps := l.jumpsToHead()
	if len(jumps) == 0 {
		return do, errUnknownDo
	}
	do = slices.MinFunc(jumps, position.compare)
	first := l.first(l.Heads[0])
	for _, p := range jumps {
		isTest := func(b int) bool { return len(l.Blocks[b].Succ) > 1 && l.at(l.Blocks[b].Last) == p }
		if p != do && (p.compare(first) < 0 || slices.ContainsFunc(l.Body, isTest)) {
			return do, errShared
		}
	}
	return do, nil
}

// jumpsBack reports whether the loop begins again right behind a test.
func (l *loopRegion) jumpsBack(test int) bool {
	return slices.ContainsFunc(l.Blocks[test].Succ, func(to int) bool {
		return to == l.Heads[0] || l.Holds(to) && len(l.code(to)) == 1 && slices.Equal(l.Blocks[to].Succ, l.Heads)
	})
}

// blocksUpTo returns the blocks of the loop from its head to an address.
func (l *loopRegion) blocksUpTo(last uint64) (blocks []int) {
	for _, b := range l.Body {
		if start := l.Blocks[b].Start; l.Blocks[l.Heads[0]].Start <= start && start <= last {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// keywordTests: clang writes the condition before the body. The branch at its end has the position of the word for or while,
// which is before that of the condition. The jump behind the body has it too.
func (l *loopRegion) keywordTests() (tests []int, known bool, err error) {
	var jumps []position
	for _, e := range l.Back(&l.Graph) {
		if p := l.at(l.Blocks[e.From].Last); len(l.Blocks[e.From].Succ) == 1 && p.column > 0 {
			jumps = append(jumps, p)
		}
	}
	var first position // of the code up to here
	for _, b := range l.inOrder() {
		code := l.code(b)
		p := l.at(l.Blocks[b].Last)
		for _, inst := range code {
			if q := l.at(inst.addr); inst.addr != l.Blocks[b].Last && q.line > 0 && q.file == p.file && (first.line == 0 || q.compare(first) < 0) {
				first = q
			}
		}
		succ := l.Blocks[b].Succ
		switch {
		case len(succ) == 2 && p.column > 0 && (slices.Contains(jumps, p) || first.line > 0 && p.compare(first) < 0):
			switch {
			case slices.Contains(succ, l.Heads[0]): // do
				return nil, true, nil
			case l.Holds(succ[0]) && l.Holds(succ[1]):
				return nil, true, errShared
			}
			return l.blocksUpTo(l.Blocks[b].Start), true, nil
		case p.line > 0 && (first.line == 0 || p.compare(first) < 0):
			first = p
		}
	}
	return nil, false, nil
}

// entersAtCall refuses to count where a call ends: a call that ends the program or jumps elsewhere does not come to the region.
func (t *tree) entersAtCall(c *sir.Code) error {
	for _, a := range c.Entries {
		if i := numberAt(t.parts, a); i >= 0 && t.insts[i].callee != "" && !slices.ContainsFunc(c.Enter, func(e sir.Edge) bool { return e.To == a }) {
			return fmt.Errorf("it begins behind the call at %#x, which may not return", a)
		}
	}
	return nil
}
