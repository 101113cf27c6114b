//go:build linux && amd64

package patch

import (
	"cmp"
	"slices"
)

// Code for the beginning of a function may run after a landing pad or after the first instruction.
// A thread that is stopped there has entered the function already. If the code is new, the thread
// must not execute it, because another placement may have counted the thread. If the code is
// removed, the thread must still execute it, because no other code will count the thread.

// moved reports whether the code of a point runs after the requested address.
func (p *Point) moved() bool { return p.at != p.patch.Addr }

// sortPoints sorts points by their instructions. At one instruction, new points that moved come
// first, then old points that moved, then the others, so that a thread can skip the new ones.
func sortPoints(points []*Point) {
	rank := func(p *Point) int {
		switch {
		case !p.moved():
			return 2
		case p.change != 0: // the point is not new
			return 1
		}
		return 0
	}
	slices.SortStableFunc(points, func(p, q *Point) int {
		return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(rank(p), rank(q)))
	})
}

// passes returns the address at which a thread must continue that is at the beginning of the
// window, or 0 if the thread need not move. fresh reports that the reason is new code.
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

// pass is a change with the results of passes.
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
