//go:build linux && amd64

package linux

import "mirador/omis"

// Boundaries returns a function that returns an error for an address inside an instruction, as
// of this moment: a breakpoint there would change the instruction, and no thread would ever
// reach the address. The function returns nil if the function at the address is unknown or
// cannot be decoded.
func (n *Node) Boundaries(p omis.ProcID) (func(addr uint64) error, error) {
	program, err := n.grounds.image(p)
	if err != nil {
		return nil, err
	}
	return func(addr uint64) error {
		s, err := program.Surveyor(addr)
		if err != nil {
			return nil // other checks refuse what is no code
		}
		if begin, splits := s.Splits(addr); splits {
			return omis.Errorf(omis.ParameterError, "%#x is in the middle of the instruction at %#x of process %d; name an address where an instruction begins", addr, begin, p.PID)
		}
		return nil
	}, nil
}

// isReached returns an error for addresses that no thread can reach.
func (e *events) isReached(w *watch) error {
	if w.inner {
		return nil
	}
	check, err := e.o.node.Boundaries(e.o.proc)
	if err != nil {
		return err
	}
	return check(w.Addr)
}
