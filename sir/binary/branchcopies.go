package binary

import (
	"fmt"
	"slices"
)

// incomplete says why a copy that the compiler made of the condition may execute the branch, or another one, by code that
// does not look like it. Each copy must lead to the branch, and to all others that the condition decides about:
// a branch that is missing may have been computed beforehand, or merged with this one.
func (b *branchPart) incomplete() string {
	for _, copied := range b.conditions() {
		decides := slices.ContainsFunc(copied, func(block int) bool { return b.deciding[block] })
		at := b.Blocks[copied[0]].Start
		tests := b.testsOf(copied)
		switch {
		case len(tests) == 0: // code that does not depend on the way there was moved before it
			continue
		case !decides:
			return fmt.Sprintf("the compiler made a copy of its condition at %#x that does not lead to its code", at)
		}
		reached := b.behind(tests)
		for _, other := range b.others {
			if !slices.ContainsFunc(reached, other.holds) {
				return fmt.Sprintf("the compiler's code of its condition at %#x does not lead to that of the branch at line %d, which it may have merged with this one", at, other.line)
			}
		}
	}
	return ""
}

// testsOf returns the blocks that end with a test.
func (b *branchPart) testsOf(blocks []int) (tests []int) {
	for _, block := range blocks {
		if b.isTest(block) {
			tests = append(tests, block)
		}
	}
	return tests
}

// behind returns the positions of code to which control can go straight from some tests.
func (b *branchPart) behind(tests []int) (reached []position) {
	seen := make([]bool, len(b.Blocks))
	for _, test := range tests {
		for _, block := range b.Blocks[test].Succ {
			for !seen[block] {
				seen[block] = true
				code := b.pieces[block]
				for n := code.from; n < code.to; n++ {
					b.is(b.of.insts[n].addr, b.of.places[n], func(p position) bool {
						reached = append(reached, p)
						return false
					})
				}
				if len(b.Blocks[block].Succ) == 1 {
					block = b.Blocks[block].Succ[0]
				}
			}
		}
	}
	slices.SortFunc(reached, position.compare)
	return slices.Compact(reached)
}

// conditions returns the blocks of the condition, those of each copy together.
func (b *branchPart) conditions() (copies [][]int) {
	is := make([]bool, len(b.Blocks))
	for block, code := range b.pieces {
		for n := code.from; n < code.to && !is[block]; n++ {
			is[block] = b.tested(n)
		}
		is[block] = is[block] || b.isTest(block)
	}
	seen := make([]bool, len(b.Blocks))
	for block := range b.Blocks {
		if !is[block] || seen[block] {
			continue
		}
		seen[block] = true
		all := []int{block}
		for i := 0; i < len(all); i++ {
			for _, next := range slices.Concat(b.Blocks[all[i]].Succ, b.Blocks[all[i]].Pred) {
				if is[next] && !seen[next] {
					seen[next] = true
					all = append(all, next)
				}
			}
		}
		slices.Sort(all)
		copies = append(copies, all)
	}
	return copies
}
