package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Place is an address that counts edges. With If the instruction there is a branch, and counts only when control goes
// on to To.
type Place struct {
	Addr uint64
	If   bool
	To   uint64
}

// CriticalError reports an edge that no address counts: its source has other successors and its
// target other predecessors, so that only the outcome of a branch distinguishes it.
type CriticalError struct {
	Branch uint64 // 0: the function is entered at Target
	Target uint64
}

func (e *CriticalError) Error() string {
	if e.Branch == 0 {
		return fmt.Sprintf("the function is entered at %#x, where its own branches lead too", e.Target)
	}
	return fmt.Sprintf("only the outcome of the branch at %#x shows whether control goes to %#x, which other code reaches too", e.Branch, e.Target)
}

// Places returns addresses of instructions that are executed together as often as the edges are
// taken: each time control takes one of the edges, it passes exactly one of the addresses, once.
// The error is a *CriticalError if there are no such addresses.
func (g *Graph) Places(edges []Edge) ([]uint64, error) {
	places, err := g.places(edges, false)
	addrs := make([]uint64, 0, len(places))
	for _, p := range places {
		addrs = append(addrs, p.Addr)
	}
	if err != nil || len(addrs) == 0 {
		addrs = nil
	}
	return addrs, err
}

// PlacesIf is Places with outcomes of branches with two successors, where nothing else distinguishes an edge.
func (g *Graph) PlacesIf(edges []Edge) ([]Place, error) { return g.places(edges, true) }

func (g *Graph) places(edges []Edge, outcomes bool) (list []Place, err error) {
	c := cut{g: g, wanted: make(map[Edge]bool, len(edges)), by: map[Edge]uint64{}, at: map[uint64]int{}}
	for _, e := range edges {
		c.wanted[e] = true
	}
	for _, e := range edges {
		if _, done := c.by[e]; !done && !c.early(e) {
			c.place(e)
		}
	}
	for _, e := range edges {
		if _, done := c.by[e]; !done && outcomes && c.outcome(e) {
			list = append(list, Place{g.Blocks[e.From].Last, true, g.Blocks[e.To].Start})
		}
	}
	for _, e := range edges {
		if _, done := c.by[e]; !done {
			branch := uint64(0)
			if e.From != Outside {
				branch = g.Blocks[e.From].Last
			}
			return nil, &CriticalError{branch, g.Blocks[e.To].Start}
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(c.at)) {
		if !slices.ContainsFunc(list, func(p Place) bool { return p.Addr == addr }) {
			list = append(list, Place{Addr: addr})
		}
	}
	slices.SortFunc(list, func(a, b Place) int { return cmp.Compare(a.Addr, b.Addr) })
	return list, nil
}

// outcome counts an edge by the outcome of the branch at the end of its source.
func (c *cut) outcome(e Edge) bool {
	if e.From == Outside || len(c.g.outOf(e.From)) != 2 || c.at[c.g.Blocks[e.From].Last] > 0 {
		return false
	}
	c.count([]Edge{e}, c.g.Blocks[e.From].Last)
	return true
}

// cut is the state of Places.
type cut struct {
	g      *Graph
	wanted map[Edge]bool
	by     map[Edge]uint64 // the address that counts an edge
	at     map[uint64]int  // number of edges that an address counts
}

// place counts an edge at the beginning of its target if all edges into the target are wanted, or else
// at the end of its source if the source has no other successor.
func (c *cut) place(e Edge) {
	if into := c.g.into(e.To); c.free(into) {
		c.count(into, c.g.Blocks[e.To].Start)
	} else if out := c.g.outOf(e.From); len(out) == 1 {
		c.count(out, c.g.Blocks[e.From].Last)
	}
}

// free reports whether all edges are wanted and not counted yet.
func (c *cut) free(edges []Edge) bool {
	for _, e := range edges {
		if _, counted := c.by[e]; counted || !c.wanted[e] {
			return false
		}
	}
	return true
}

func (c *cut) count(edges []Edge, addr uint64) {
	for _, e := range edges {
		c.by[e] = addr
	}
	c.at[addr] += len(edges)
}

// early counts an edge at the end of its source, a branch, if each other outcome of the branch leads to
// a wanted edge too. Then this address counts all these edges. Between the branch and the edges may be
// straight code only, such as the preparation of a loop, which a test before the loop may skip.
func (c *cut) early(e Edge) bool {
	var all []Edge
	for _, o := range c.g.outOf(e.From) {
		wanted, ok := c.follow(o)
		if addr, counted := c.by[wanted]; !ok || counted && c.at[addr] != 1 {
			return false
		}
		all = append(all, wanted)
	}
	if len(all) < 2 {
		return false
	}
	for _, o := range all {
		if addr, counted := c.by[o]; counted {
			delete(c.at, addr)
		}
	}
	c.count(all, c.g.Blocks[e.From].Last)
	return true
}

// follow returns the first wanted edge on the straight way from an edge.
func (c *cut) follow(e Edge) (Edge, bool) {
	const longest = 64
	for range longest {
		if c.wanted[e] {
			return e, true
		}
		into, out := c.g.into(e.To), c.g.outOf(e.To)
		if len(into) != 1 || len(out) != 1 {
			break
		}
		e = out[0]
	}
	return e, false
}
