package program

import "mirador/omis/node"

// Machine is a node that declares its capabilities.
type Machine interface {
	node.Node
	// Capabilities returns the same result in every call.
	Capabilities() Capabilities
}

// Capabilities are what a machine can do beyond node.Node. A nil field means that it cannot:
// the services that need the capability answer UNSUPPORTED_SERVICE and name it.
type Capabilities struct {
	node.Capabilities
	Placers       []Placer // places where programs can run, cheapest first
	Loader        Loader
	TimingChecker TimingChecker
	Costs         Costs
	// MarksCalls reports that the system calls which threads make for the monitor carry a mark (calls.Mark), so that
	// programs at system calls do not count them.
	MarksCalls bool
}
