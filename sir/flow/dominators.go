package flow

// Dominators returns for each block the last other block that every path to it passes; -1 for the
// entry, and for blocks that cannot be reached. It uses the algorithm of Cooper, Harvey and
// Kennedy.
func (g *Graph) Dominators() ([]int, error) {
	order, post := g.postorder()
	dom := make([]int, len(g.Blocks))
	for i := range dom {
		dom[i] = -1
	}
	if len(dom) == 0 {
		return dom, nil
	}
	dom[0] = 0
	work := 0
	for changed := true; changed; {
		changed = false
		for k := len(order) - 2; k >= 0; k-- {
			b, d := order[k], -1
			for _, p := range g.Blocks[b].Pred {
				if work++; work > mostWork {
					return nil, ErrTooLarge
				}
				switch {
				case dom[p] < 0:
				case d < 0:
					d = p
				default:
					d = meet(dom, post, p, d, &work)
				}
			}
			if d != dom[b] {
				dom[b], changed = d, true
			}
		}
	}
	dom[0] = -1
	return dom, nil
}

// meet returns the last common dominator of two blocks.
func meet(dom, post []int, a, b int, work *int) int {
	for a != b {
		*work++
		for post[a] < post[b] {
			a = dom[a]
		}
		for post[b] < post[a] {
			b = dom[b]
		}
	}
	return a
}

// postorder returns the blocks that can be reached in the order in which a depth-first search
// leaves them, and the place of each in this order.
func (g *Graph) postorder() (order, post []int) {
	type frame struct{ block, next int }
	post = make([]int, len(g.Blocks))
	seen := make([]bool, len(g.Blocks))
	if len(g.Blocks) == 0 {
		return nil, post
	}
	seen[0] = true
	for stack := []frame{{0, 0}}; len(stack) > 0; {
		f := &stack[len(stack)-1]
		if succ := g.Blocks[f.block].Succ; f.next < len(succ) {
			to := succ[f.next]
			f.next++
			if !seen[to] {
				seen[to] = true
				stack = append(stack, frame{to, 0})
			}
			continue
		}
		post[f.block] = len(order)
		order = append(order, f.block)
		stack = stack[:len(stack)-1]
	}
	return order, post
}
