package fake

import "mirador/omis"

var _ omis.Costs = (*Node)(nil)

// Cost: see omis.Costs.
func (n *Node) Cost(placement, kind string) (omis.Cost, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.costs[placement+" "+kind]
	return c, ok
}

// Calibrate: see omis.Costs. All that can be known is known.
func (*Node) Calibrate(string) {}

// SetCost says what an occurrence costs at a kind of place of a placement.
func (n *Node) SetCost(placement, kind string, c omis.Cost) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.costs == nil {
		n.costs = make(map[string]omis.Cost)
	}
	n.costs[placement+" "+kind] = c
}
