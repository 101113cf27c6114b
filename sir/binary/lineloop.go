package binary

import (
	"errors"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir/flow"
)

// errTestOrBody: a condition on several lines looks like a body that begins with such a test.
var errTestOrBody = errors.New("its body begins with a test that leaves it, or its own test is on several lines: the code does not tell them apart")

// testsOfRust: without optimisation, the jump at the end of a loop has the position of the word that begins it, and the code of a test
// is on that line. In "loop" no other code is there.
func (l *loopRegion) testsOfRust() ([]int, error) {
	first := l.first(l.Heads[0])
	word, err := l.beginningWord(first)
	switch {
	case err != nil:
		return nil, err
	case first.line > word.line:
		if slices.ContainsFunc(l.Body, func(b int) bool { return l.hasCodeOn(b, word) }) {
			return nil, errUnknownDo
		}
		return nil, nil
	}
	return l.testsOn(word)
}

// testsOn returns the blocks at the beginning of the loop with the code of a line.
func (l *loopRegion) testsOn(word position) ([]int, error) {
	tests := []int{l.Heads[0]}
	for i := 0; i < len(tests); i++ {
		if !l.onlyOn(tests[i], word) {
			return nil, errOneLine
		}
		for _, to := range l.Blocks[tests[i]].Succ {
			if l.Holds(to) && !slices.Contains(tests, to) && l.onlyOn(to, word) {
				tests = append(tests, to)
			}
		}
	}
	if len(tests) == len(l.Body) {
		return nil, errOneLine
	}
	for _, b := range l.Body {
		isTest := func(to int) bool { return to != l.Heads[0] && slices.Contains(tests, to) }
		if !slices.Contains(tests, b) && (l.leaves(b) && onLine(l.at(l.Blocks[b].Last), word) || slices.ContainsFunc(l.Blocks[b].Succ, isTest)) {
			return nil, errOneLine // its tests have code of other lines
		}
	}
	return tests, l.onOneOf(tests)
}

// testsOfGo: the jump to the beginning of a loop has the line of the word that begins it, and the code of a test is on that line. Without
// this jump, a loop begins with its body if nothing leaves it there.
func (l *loopRegion) testsOfGo() ([]int, error) {
	first := l.first(l.Heads[0])
	if first.line == 0 {
		return nil, errUnknownDo
	}
	word := !slices.ContainsFunc(l.Enter(&l.Graph), func(e flow.Edge) bool {
		if e.From == flow.Outside || len(l.Blocks[e.From].Succ) > 1 {
			return true
		}
		code := l.code(e.From)
		return code[len(code)-1].Op != x86asm.JMP || !onLine(l.at(l.Blocks[e.From].Last), first)
	})
	if word {
		return l.testsOn(first)
	}
	if l.leavesOn(first) || l.leavesFirst() {
		return nil, errUnknownDo
	}
	return nil, nil
}

// leavesOn reports whether a branch of a line leaves the loop.
func (l *loopRegion) leavesOn(at position) bool {
	return slices.ContainsFunc(l.Body, func(b int) bool { return l.leaves(b) && onLine(l.at(l.Blocks[b].Last), at) })
}

// leavesFirst reports whether the first branch in the loop may leave it.
func (l *loopRegion) leavesFirst() bool {
	b := l.Heads[0]
	for range l.Body {
		if len(l.Blocks[b].Succ) != 1 {
			break
		}
		if b = l.Blocks[b].Succ[0]; !l.Holds(b) || b == l.Heads[0] {
			return false
		}
	}
	return l.leaves(b)
}

// beginningWord returns the position of the word that begins a loop, whose first code has another one. It may be that of the code before
// the loop: "for" makes its iterator there.
func (l *loopRegion) beginningWord(first position) (word position, err error) {
	jumps := l.jumpsToHead()
	for _, e := range l.Enter(&l.Graph) {
		if e.From == flow.Outside {
			continue
		}
		if p := l.at(l.Blocks[e.From].Last); onLine(p, first) && p.column <= first.column {
			word = p
		}
	}
	switch {
	case word.line > 0:
	case len(jumps) == 0:
		return word, errUnknownDo
	default:
		word = slices.MinFunc(jumps, position.compare)
	}
	switch {
	case word.file != first.file || word.compare(first) > 0: // the loop ends with another one, whose test jumps back
		return word, errUnknownDo
	case slices.ContainsFunc(jumps, func(p position) bool { return p != word && p.line <= first.line && !onLine(p, word) }):
		return word, errShared
	}
	return word, nil
}

// jumpsToHead returns the positions of the jumps that begin the loop again.
func (l *loopRegion) jumpsToHead() (jumps []position) {
	for _, e := range l.Back(&l.Graph) {
		if p := l.at(l.Blocks[e.From].Last); len(l.Blocks[e.From].Succ) == 1 && p.line > 0 {
			jumps = append(jumps, p)
		}
	}
	return jumps
}

// hasCodeOn reports whether a block has code of a line, except the jump that begins the loop again.
func (l *loopRegion) hasCodeOn(b int, at position) bool {
	return slices.ContainsFunc(l.code(b), func(i instruction) bool {
		return onLine(l.at(i.addr), at) && !(i.addr == l.Blocks[b].Last && l.at(i.addr) == at)
	})
}

// onlyOn reports whether a block has code of a line, and of no other one.
func (l *loopRegion) onlyOn(b int, at position) bool {
	known := false
	for _, i := range l.code(b) {
		p := l.at(i.addr)
		if p.line > 0 && !onLine(p, at) {
			return false
		}
		known = known || p.line > 0
	}
	return known
}

// onOneOf refuses tests that may go on in another line: behind them the code leaves the loop for the same place.
func (l *loopRegion) onOneOf(tests []int) error {
	var ends []int
	for _, b := range tests {
		for _, to := range l.Blocks[b].Succ {
			if !l.Holds(to) {
				ends = append(ends, l.behindJumps(to))
			}
		}
	}
	if len(ends) == 0 {
		return errTestOrBody
	}
	enter, _ := l.iterations(tests)
	last := 0
	for _, e := range enter {
		last = max(last, l.firstBehind(e.To, l.first(l.Heads[0]))+1)
	}
	seen := map[int]bool{}
	for _, e := range enter {
		if l.mayLeave(e.To, ends, last, append(tests, l.Heads...), seen) {
			return errTestOrBody
		}
	}
	return nil
}

// firstBehind returns the first line of a block that is behind another one.
func (l *loopRegion) firstBehind(b int, test position) int {
	for _, i := range l.code(b) {
		if p := l.at(i.addr); p.file == test.file && p.line > test.line {
			return p.line
		}
	}
	return test.line
}

// mayLeave reports whether control may go from a block to one of some places outside of the loop, by a branch up to a line and not by
// the tests.
func (l *loopRegion) mayLeave(b int, ends []int, last int, tests []int, seen map[int]bool) bool {
	if seen[b] || slices.Contains(tests, b) || l.at(l.Blocks[b].Last).line > last {
		return false
	}
	seen[b] = true
	for _, to := range l.Blocks[b].Succ {
		if l.Holds(to) && l.mayLeave(to, ends, last, tests, seen) || !l.Holds(to) && len(l.Blocks[b].Succ) > 1 && slices.Contains(ends, l.behindJumps(to)) {
			return true
		}
	}
	return false
}

// behindJumps returns where control comes from a block that may only jump.
func (l *loopRegion) behindJumps(b int) int {
	for range l.Blocks {
		if len(l.code(b)) != 1 || len(l.Blocks[b].Succ) != 1 {
			break
		}
		b = l.Blocks[b].Succ[0]
	}
	return b
}
