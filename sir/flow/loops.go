package flow

import (
	"cmp"
	"slices"
)

// Loop is a set of blocks each of which can be reached from each other, without the blocks where
// a surrounding loop is entered.
type Loop struct {
	Heads  []int // the blocks where it is entered; the loop is irreducible if there are several
	Body   []int // its blocks, in ascending order
	Parent int   // index of the innermost loop around it, -1 if there is none
	Depth  int   // number of loops around it
}

// Irreducible reports whether the loop is entered at several blocks. It then has no test that
// each iteration passes.
func (l *Loop) Irreducible() bool { return len(l.Heads) > 1 }

// Holds reports whether a block belongs to the loop.
func (l *Loop) Holds(b int) bool {
	_, ok := slices.BinarySearch(l.Body, b)
	return ok
}

// Enter returns the edges that lead into the loop.
func (l *Loop) Enter(g *Graph) []Edge { return l.heads(g, false) }

// Back returns the edges that begin another iteration.
func (l *Loop) Back(g *Graph) []Edge { return l.heads(g, true) }

func (l *Loop) heads(g *Graph, inside bool) (edges []Edge) {
	for _, h := range l.Heads {
		for _, e := range g.into(h) {
			if l.Holds(e.From) == inside {
				edges = append(edges, e)
			}
		}
	}
	return edges
}

// Leave returns the edges that lead out of the loop.
func (l *Loop) Leave(g *Graph) (edges []Edge) {
	for _, b := range l.Body {
		for _, e := range g.outOf(b) {
			if !l.Holds(e.To) {
				edges = append(edges, e)
			}
		}
	}
	return edges
}

// Loops returns the loops of the function, each before those inside it. It finds the strongly
// connected components, and inside each of them the components that are left without the edges to
// its heads. In a graph without irreducible loops these are the natural loops.
func (g *Graph) Loops() ([]Loop, error) {
	s := search{g: g, part: make([]int, len(g.Blocks)), number: make([]int, len(g.Blocks)), low: make([]int, len(g.Blocks)), cut: make([]bool, len(g.Blocks))}
	all := make([]int, len(g.Blocks))
	for i := range all {
		all[i] = i
	}
	type level struct {
		blocks []int
		parent int
	}
	for todo := []level{{all, -1}}; len(todo) > 0; todo = todo[1:] {
		components, err := s.components(todo[0].blocks)
		if err != nil {
			return nil, err
		}
		for _, blocks := range components {
			slices.Sort(blocks)
			l := Loop{Body: blocks, Parent: todo[0].parent}
			if l.Parent >= 0 {
				l.Depth = s.loops[l.Parent].Depth + 1
			}
			for _, b := range blocks {
				if b == 0 || slices.ContainsFunc(g.Blocks[b].Pred, func(from int) bool { return !l.Holds(from) }) {
					l.Heads = append(l.Heads, b)
					s.cut[b] = true
				}
			}
			s.loops = append(s.loops, l)
			todo = append(todo, level{blocks, len(s.loops) - 1})
		}
	}
	return s.loops, nil
}

// search is the state of Loops.
type search struct {
	g           *Graph
	loops       []Loop
	cut         []bool // edges to the block are not followed
	part        []int  // the number of the search that looks at the block
	parts, work int
	number, low []int // of Tarjan's algorithm; number 0: not visited
	open        []int // blocks of components that are not complete
	isOpen      map[int]bool
	found       [][]int
}

// components returns the strongly connected components with an edge inside, of the graph that
// consists of some blocks.
func (s *search) components(blocks []int) ([][]int, error) {
	s.parts++
	s.open, s.isOpen, s.found = nil, map[int]bool{}, nil
	for _, b := range blocks {
		s.part[b], s.number[b] = s.parts, 0
	}
	count := 0
	for _, b := range blocks {
		if s.number[b] == 0 && !s.visit(b, &count) {
			return nil, ErrTooLarge
		}
	}
	slices.SortFunc(s.found, func(a, b []int) int { return cmp.Compare(slices.Min(a), slices.Min(b)) })
	return s.found, nil
}

// visit runs Tarjan's algorithm from a block, without recursion.
func (s *search) visit(root int, count *int) bool {
	type frame struct{ block, next int }
	enter := func(b int) frame {
		*count++
		s.number[b], s.low[b] = *count, *count
		s.open, s.isOpen[b] = append(s.open, b), true
		return frame{b, 0}
	}
	for stack := []frame{enter(root)}; len(stack) > 0; {
		f := &stack[len(stack)-1]
		if s.work++; s.work > mostWork {
			return false
		}
		b, succ := f.block, s.g.Blocks[f.block].Succ
		if f.next < len(succ) {
			to := succ[f.next]
			f.next++
			switch {
			case s.part[to] != s.parts || s.cut[to]:
			case s.number[to] == 0:
				stack = append(stack, enter(to))
			case s.isOpen[to]:
				s.low[b] = min(s.low[b], s.number[to])
			}
			continue
		}
		stack = stack[:len(stack)-1]
		if len(stack) > 0 {
			up := stack[len(stack)-1].block
			s.low[up] = min(s.low[up], s.low[b])
		}
		if s.low[b] == s.number[b] {
			s.close(b)
		}
	}
	return true
}

// close ends the component that began with a block.
func (s *search) close(first int) {
	i := slices.Index(s.open, first)
	component := slices.Clone(s.open[i:])
	s.open = s.open[:i]
	for _, b := range component {
		delete(s.isOpen, b)
	}
	if len(component) > 1 || !s.cut[first] && slices.Contains(s.g.Blocks[first].Succ, first) {
		s.found = append(s.found, component)
	}
}
