//go:build linux && amd64

package patch

import (
	"cmp"
	"slices"
)

// Code for the beginning of a function may run behind a landing pad or the first
// instruction. A stopped thread that stands right there has come in already. If the code is
// new, another placement may have counted the thread: it must not run the code. If the
// code is taken away, it has not run for that thread yet, and no code at the beginning of
// the function will: the thread must still run it.

// moved reports whether the code of a point runs behind the address it was asked for.
func (p *Point) moved() bool { return p.at != p.patch.Addr }

// sortPoints sorts points by their instructions. At one instruction, new points that moved
// come first, then those that moved before, then the others: so a thread that must not run
// the new ones can begin behind them.
func sortPoints(points []*Point) {
	rank := func(p *Point) int {
		switch {
		case !p.moved():
			return 2
		case p.change != 0: // it has a switch already
			return 1
		}
		return 0
	}
	slices.SortStableFunc(points, func(p, q *Point) int {
		return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(rank(p), rank(q)))
	})
}

// passes tells where a thread goes on that stands at the beginning of the window of a
// change; 0: it stays. fresh tells that new code is the reason.
func (b *Batch) passes(c *change) (to uint64, fresh bool) {
	if c.err != nil {
		return 0, false
	}
	if p := c.former; p != nil && p.Addr == c.Addr {
		for _, point := range p.points {
			if point.at == c.Addr && point.moved() && !slices.Contains(c.points, point) {
				return p.stub, false
			}
		}
	}
	if c.made == nil {
		return 0, false
	}
	for _, point := range b.freshOf(c) {
		if i := slices.Index(c.made.points, point); i >= 0 && point.at == c.Addr && point.moved() {
			to, fresh = max(to, c.made.stub+uint64(c.made.codes[i].end)), true
		}
	}
	return to, fresh
}

// pass is passes for the changes that have such a place, by their addresses.
type pass struct {
	*change
	to    uint64
	fresh bool
}

func (b *Batch) allPasses() map[uint64]pass {
	all := make(map[uint64]pass)
	for _, c := range b.changes {
		if to, fresh := b.passes(c); to != 0 {
			all[c.Addr] = pass{c, to, fresh}
		}
	}
	return all
}
