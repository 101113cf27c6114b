package binary

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mirador/sir/flow"
)

// This file has signs that a compiler folded a test or iterations of a loop into other code, where no copy shows it.

var (
	errNoColumns = errors.New("the debug information has no columns, and without these it is not known which of its code is its test; compile it without -gno-column-info")
	errSmall     = errors.New("it was compiled with -Os, and gcc then joins code of several loops without a sign; compile it with -O2")
	errDebugged  = errors.New("it was compiled with -Og, and gcc then leaves out tests whose outcome it knows, without a sign; compile it with -O0 or -O2")
)

// ofOption matches the options of gcc for which loops are not counted, or not their iterations.
var ofOption = regexp.MustCompile(` -O([sgz])\b`)

// optionOf returns the letter of such an option, "" if there is none.
func optionOf(producer string) string {
	if found := ofOption.FindStringSubmatch(producer); found != nil && strings.HasPrefix(producer, "GNU ") {
		return found[1]
	}
	return ""
}

// unsuited says why no loop is counted that was compiled in this way.
func (l *loopRegion) unsuited(control position) error {
	switch {
	case l.option == "s" || l.option == "z":
		return errSmall
	case control.column == 0 && !l.golang:
		return errNoColumns
	}
	return nil
}

// foldedExecution says why executions of a loop in optimised code are not counted.
func (l *loopRegion) foldedExecution(control position, guards []flow.Edge) error {
	if err := l.unsuited(control); err != nil {
		return err
	}
	if at := l.strayCode(control); at != 0 {
		return fmt.Errorf("the compiler made a copy of its test, at %#x, where its outcome is known", at)
	}
	if head := l.Heads[0]; l.llvm && onLine(l.first(head), control) && slices.Contains(l.Blocks[head].Succ, head) {
		return fmt.Errorf("whether its code at %#x is its test or that of a loop around it is not known", l.Blocks[head].Start)
	}
	if at := l.foldedTest(control, guards); at != 0 {
		return fmt.Errorf("whether the branch at %#x, which skips it, has its test too is not known", at)
	}
	return nil
}

// foldedIteration says why iterations of a loop in optimised code are not counted.
func (l *loopRegion) foldedIteration(control position) error {
	if err := l.unsuited(control); err != nil {
		return err
	}
	if l.option == "g" {
		return errDebugged
	}
	for _, b := range l.Body {
		for i := range l.code(b) {
			if inst := &l.code(b)[i]; l.isVector(inst) {
				return fmt.Errorf("the vector instruction at %#x may be of several iterations", inst.addr)
			}
		}
	}
	if at := l.computed(control); at != 0 {
		return fmt.Errorf("the compiler computes how many iterations there will be, at %#x, and may have removed another test of it", at)
	}
	return nil
}

// strayCode returns the address of code on the line of the loop's test that neither leads to the loop nor follows it, 0 if there is none.
// Such code is a copy of the test where the compiler knows that it ends the loop.
func (l *loopRegion) strayCode(control position) uint64 {
	var around []int // the heads of the loop around
	if l.Parent >= 0 {
		around = l.loops[l.Parent].Heads
	}
	var left []int
	for _, e := range l.Leave(&l.Graph) {
		left = append(left, e.To)
	}
	behind := l.reachable(left, around)
	for b := range l.Blocks {
		if l.Holds(b) || behind[b] || l.Parent >= 0 && !l.loops[l.Parent].Holds(b) {
			continue
		}
		for _, inst := range l.code(b) {
			if l.at(inst.addr).line == control.line && l.at(inst.addr).file == control.file && !l.leadsHere(b, around) {
				return inst.addr
			}
		}
	}
	return 0
}

// leadsHere reports whether control can go from a block to the loop, not through some others.
func (l *loopRegion) leadsHere(b int, without []int) bool {
	return l.reachable([]int{b}, slices.DeleteFunc(slices.Clone(without), func(w int) bool { return w == b || l.Holds(w) }))[l.Heads[0]]
}

// reachable returns to which blocks control can go from some blocks, not through others.
func (g *graph) reachable(from, without []int) map[int]bool {
	seen := map[int]bool{}
	for todo := slices.Clone(from); len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[b] && !slices.Contains(without, b) {
			seen[b] = true
			todo = append(todo, g.Blocks[b].Succ...)
		}
	}
	return seen
}

// foldedTest returns the address of a branch that skips a loop and goes on where the loop's test ends it, 0 if there is none. The loop has
// a test before its body, but control enters it behind that: the compiler knew its outcome, or made one test of it and of the branch.
func (l *loopRegion) foldedTest(control position, guards []flow.Edge) uint64 {
	head := l.Heads[0]
	if len(guards) > 0 || l.at(l.Blocks[head].Last) == control || control.line > l.first(head).line {
		return 0
	}
	ends := map[int]bool{}
	for _, e := range l.Leave(&l.Graph) {
		if l.at(l.Blocks[e.From].Last) == control {
			ends[e.To] = true
		}
	}
	for d := l.dom[head]; d >= 0; d = l.dom[d] {
		if l.Parent >= 0 && !l.loops[l.Parent].Holds(d) {
			break
		}
		if !l.Holds(d) && len(l.Blocks[d].Succ) == 2 && slices.ContainsFunc(l.Blocks[d].Succ, func(to int) bool { return ends[to] }) {
			return l.Blocks[d].Last
		}
	}
	return 0
}

// computed returns the address of a conditional move of the loop's line before the loop, 0 if there is none. LLVM makes one test of several
// that end a loop when it computes the least number of iterations.
func (l *loopRegion) computed(control position) uint64 {
	for d := l.dom[l.Heads[0]]; d >= 0 && l.llvm; d = l.dom[d] {
		if l.Parent >= 0 && !l.loops[l.Parent].Holds(d) {
			break
		}
		for i := range l.code(d) {
			inst := &l.code(d)[i]
			if onLine(l.at(inst.addr), control) && strings.HasPrefix(l.whole(inst).Op.String(), "CMOV") {
				return inst.addr
			}
		}
	}
	return 0
}

// isVector reports whether an instruction computes several values at once, or is not known.
func (g *graph) isVector(inst *instruction) bool {
	p := partOf(g.parts, inst.addr)
	return !isScalar(p.code[inst.addr-p.low:]) && vectorised(g.whole(inst))
}
