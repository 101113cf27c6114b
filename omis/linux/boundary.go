//go:build linux && amd64

package linux

import "mirador/omis"

// Boundaries makes what tells, of many addresses of a process as of this moment, whether an
// address is inside of an instruction: a breakpoint there, whoever sets it, would make
// another instruction of it, and no thread would ever be seen at the address. Where it is
// not known what function an address is of, or that cannot be decoded, nothing is said.
func (n *Node) Boundaries(p omis.ProcID) (func(addr uint64) error, error) {
	program, err := n.grounds.image(p)
	if err != nil {
		return nil, err
	}
	return func(addr uint64) error {
		s, err := program.Surveyor(addr)
		if err != nil {
			return nil // of no file, or no code at all, which others find out
		}
		if begin, splits := s.Splits(addr); splits {
			return omis.Errorf(omis.ParameterError, "%#x is in the middle of the instruction at %#x of process %d; name an address where an instruction begins", addr, begin, p.PID)
		}
		return nil
	}, nil
}

// isReached refuses addresses that no thread can reach.
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
