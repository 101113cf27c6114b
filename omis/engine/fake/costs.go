package fake

import (
	"mirador/omis/program"
)

// Cost implements program.Costs.
func (n *Node) Cost(placement, kind string) (program.Cost, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.costs[placement+" "+kind]
	return c, ok
}

// Calibrate does nothing: SetCost sets the costs.
func (*Node) Calibrate(string) {}

// Want does nothing either.
func (*Node) Want(string) {}

// SetCost sets the cost of an occurrence at a kind of place of a placement.
func (n *Node) SetCost(placement, kind string, c program.Cost) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.costs == nil {
		n.costs = make(map[string]program.Cost)
	}
	n.costs[placement+" "+kind] = c
}
