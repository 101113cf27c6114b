package node

import "mirador/omis"

// Neighbours is the capability of a node to report how its watches and the uprobes of other
// tools affect each other.
type Neighbours interface {
	// Beside returns what other tools must not do at an address that the node watches, or
	// what another tool has done there to the watch; "" if there is nothing to report. For
	// an address that is not watched yet Beside returns what would apply.
	Beside(p omis.ProcID, addr uint64) string
}
