//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"log/slog"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/ext/pa"
	"mirador/omis/linux"
	"mirador/omis/place/calibrate"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"

	"mirador/bench/subject"
)

// placer is a placement that is to be closed.
type placer interface {
	omis.Placer
	Close() error
}

// machine is this node with one placement, so that it is known which is measured. What
// its probes cost is found out anew, and taken off what they report.
type machine struct {
	*linux.Node
	*calibrate.Costs
	placers []placer
}

func (m machine) Placers() []omis.Placer {
	var list []omis.Placer
	for _, p := range m.placers {
		list = append(list, p)
	}
	return list
}

func (m machine) Close(ctx context.Context) error {
	errs := []error{m.Costs.Close(), m.Node.Close(ctx)}
	for _, p := range m.placers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// The names of placements.
const (
	trap     = "trap"
	inKernel = kernel.Name
	inCode   = inline.Name
	// inCodeFast is the same with the fast clock, where that makes a difference.
	inCodeFast = inCode + ", fast clock"
	// inCodeSome is where all calls are counted and one in a hundred is timed.
	inCodeSome = inCode + ", one in 100"
)

// placements are all, cheapest first.
var placements = [...]string{inCode, inKernel, trap}

// monitor is the real engine over the real node.
type monitor struct {
	placement string
	node      omis.Node
	e         *engine.Engine
	tools     int
}

func openMonitor(placement string, warden []string) (*monitor, error) {
	n, err := linux.Open(linux.Config{Name: "bench", Warden: warden})
	if err != nil {
		return nil, err
	}
	here := machine{Node: n}
	switch placement {
	case inCode:
		here.placers = []placer{inline.New(n)}
	case inKernel:
		here.placers = []placer{kernel.New(nil)}
	}
	here.Costs = calibrate.New(calibrate.Config{Node: n, Placers: here.Placers()})
	m := &monitor{placement: placement, node: here}
	if m.e, err = engine.New(here, slog.New(slog.DiscardHandler), pa.New()); err != nil {
		return nil, errors.Join(err, here.Close(context.Background()))
	}
	return m, nil
}

func (m *monitor) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), subject.Patience)
	defer cancel()
	return errors.Join(m.e.Close(ctx), m.node.Close(ctx))
}
