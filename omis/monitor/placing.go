package monitor

import (
	"context"
	"errors"
	"io"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/place/calibrate"
	"mirador/omis/program"
)

// placing is the node of this machine with placements.
type placing struct {
	*linux.Node
	placers []program.Placer // cheapest first
}

// calibrated is a node whose placements have known costs.
type calibrated struct {
	placing
	*calibrate.Costs
}

// hider is a placer that changes the code of targets without the node's knowledge.
type hider interface {
	// Hide replaces the placer's changes in memory, which was read at addr, by the
	// original bytes.
	Hide(id omis.ProcID, addr uint64, memory []byte)
}

// registrarOwner is a placer with a process of its own.
type registrarOwner interface {
	// Registrar returns the pid of the process that sets uprobes, 0 if there is none.
	Registrar() int
}

// Capabilities adds the placements to the capabilities of the node.
func (p placing) Capabilities() program.Capabilities {
	c := p.Node.Capabilities()
	c.Placers = p.placers
	return c
}

// Capabilities adds the costs of the placements.
func (c calibrated) Capabilities() program.Capabilities {
	all := c.placing.Capabilities()
	all.Costs = c.Costs
	return all
}

// Identify refuses the processes of placers: if the monitor stopped such a process, both
// would wait for each other.
func (p placing) Identify(pid int) (omis.ProcID, error) {
	for _, placer := range p.placers {
		if s, ok := placer.(registrarOwner); ok && pid > 0 && pid == s.Registrar() {
			return omis.ProcID{}, omis.Errorf(omis.ParameterError, "process %d is the registrar, which sets uprobes for the monitor; the monitor must not stop it", pid)
		}
	}
	return p.Node.Identify(pid)
}

// ReadMemory reads the memory of a process without the placers' changes.
func (p placing) ReadMemory(id omis.ProcID, addr uint64, buf []byte) (int, error) {
	n, err := p.Node.ReadMemory(id, addr, buf)
	for _, placer := range p.placers {
		if h, ok := placer.(hider); ok {
			h.Hide(id, addr, buf[:n])
		}
	}
	return n, err
}

// Close releases the node first, because it may need the placements, and then the
// placements.
func (p placing) Close(ctx context.Context) error {
	errs := []error{p.Node.Close(ctx)}
	for _, placer := range p.placers {
		if c, ok := placer.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Close stops measuring costs before it releases the node.
func (c calibrated) Close(ctx context.Context) error {
	return errors.Join(c.Costs.Close(), c.placing.Close(ctx))
}
