// Package flow finds the loops of a function in its control-flow graph, and the addresses at
// which a probe counts how often given edges of the graph are taken.
//
// It works on graphs alone and imports nothing of this module; sir/binary makes the graphs from
// machine code. A Graph is not changed after Connect, and may then be used by several
// goroutines. The work for a graph is limited, because the code may have been made to harm its
// reader.
package flow

import (
	"errors"
	"slices"
)

// Graph is the control-flow graph of a function. Blocks[0] is the block where the function is
// entered. All blocks can be reached from it.
type Graph struct {
	Blocks []Block
}

// Block is a sequence of instructions that is entered at its first and left at its last one.
type Block struct {
	Start uint64 // address of the first instruction
	Last  uint64 // address of the last instruction that has an effect
	End   uint64 // address behind the last instruction
	Succ  []int  // the blocks that may follow; none: the function is left, or never continues
	Pred  []int  // set by Connect
}

// Outside is the source of the edge by which the function is entered.
const Outside = -1

// Edge leads from the end of a block to the beginning of another one.
type Edge struct{ From, To int }

// ErrTooLarge is the error about graphs that would take too much time or memory.
var ErrTooLarge = errors.New("the function is too large to find its loops")

// Limits for one function. The largest functions of real programs have about 20,000 blocks, with
// loops nested 20 deep.
const (
	mostBlocks = 1 << 18
	mostWork   = 1 << 26 // edges looked at
)

// Connect sets Pred of all blocks. It removes double edges, which conditional jumps to the next
// instruction make.
func (g *Graph) Connect() error {
	if len(g.Blocks) > mostBlocks {
		return ErrTooLarge
	}
	count, all := make([]int, len(g.Blocks)), 0
	for i := range g.Blocks {
		b := &g.Blocks[i]
		slices.Sort(b.Succ)
		b.Succ = slices.Compact(b.Succ)
		for _, s := range b.Succ {
			count[s]++
			all++
		}
	}
	pred := make([]int, all)
	for i := range g.Blocks {
		g.Blocks[i].Pred, pred = pred[:0:count[i]], pred[count[i]:]
	}
	for i := range g.Blocks {
		for _, s := range g.Blocks[i].Succ {
			g.Blocks[s].Pred = append(g.Blocks[s].Pred, i)
		}
	}
	return nil
}

// into returns all edges that lead to a block.
func (g *Graph) into(b int) []Edge {
	edges := make([]Edge, 0, len(g.Blocks[b].Pred)+1)
	if b == 0 {
		edges = append(edges, Edge{Outside, 0})
	}
	for _, p := range g.Blocks[b].Pred {
		edges = append(edges, Edge{p, b})
	}
	return edges
}

// outOf returns all edges that lead from a block to another one.
func (g *Graph) outOf(b int) []Edge {
	if b == Outside {
		return nil
	}
	edges := make([]Edge, 0, len(g.Blocks[b].Succ))
	for _, s := range g.Blocks[b].Succ {
		edges = append(edges, Edge{b, s})
	}
	return edges
}

// Borders returns the edges that lead into a set of blocks, and those that lead out of it.
func (g *Graph) Borders(holds func(block int) bool) (enter, leave []Edge) {
	for b := range g.Blocks {
		if !holds(b) {
			continue
		}
		if b == 0 {
			enter = append(enter, Edge{Outside, 0})
		}
		for _, from := range g.Blocks[b].Pred {
			if !holds(from) {
				enter = append(enter, Edge{from, b})
			}
		}
		for _, to := range g.Blocks[b].Succ {
			if !holds(to) {
				leave = append(leave, Edge{b, to})
			}
		}
	}
	return enter, leave
}
