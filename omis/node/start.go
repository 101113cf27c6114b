package node

import "mirador/omis"

// StartFinder finds the place at which a launched process has mapped its libraries, but has not
// yet run any of their code.
type StartFinder interface {
	// Start describes a launched process that has not been continued, or is at Start.At.
	Start(p omis.ProcID) (Start, error)
}

// Start is the place at which a launched process is complete: its libraries are mapped, and
// no constructor has run.
type Start struct {
	// At is the address of the place; 0: the process is there from the beginning.
	At uint64
	// Loading reports that the libraries are not mapped yet. The process may reach At
	// several times before they are.
	Loading bool
	// Late is what has run when the process reaches At; "" if nothing has.
	Late string
}
