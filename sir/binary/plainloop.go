package binary

import (
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
	if l.llvm {
		return l.keywordTests()
	}
	tests, err = l.testsBehindBody()
	return tests, true, err
}

// testsBehindBody: gcc writes a condition that is tested before each iteration behind the body, so that control comes to it from
// lower addresses in the loop. It jumps back to the beginning of other loops.
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
	return l.blocksUpTo(^uint64(0)), nil
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
	blocks := l.blocksUpTo(^uint64(0))
	slices.SortFunc(blocks, func(a, b int) int { return int(l.Blocks[a].Start) - int(l.Blocks[b].Start) })
	var first position // of the code up to here
	for _, b := range blocks {
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
