//go:build linux && amd64

package probe

import (
	"context"

	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/place/calibrate"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"

	"mirador/bench/subject"
)

// Names of placements.
const (
	trap     = "trap"
	inKernel = kernel.Name
	inCode   = inline.Name
	// inCodeFast uses the fast clock, where that makes a difference.
	inCodeFast = inCode + ", fast clock"
	// inCodeSome counts all calls and times one in a hundred.
	inCodeSome = inCode + ", one in 100"
)

// placements lists all placements, cheapest first.
var placements = [...]string{inCode, inKernel, trap}

// rig is a monitor with one placement, so that only that one can be measured. The monitor
// calibrates its probes anew, and subtracts their cost from the times they report.
type rig struct {
	*monitor.Monitor
	placement string
	tools     int
}

func openRig(placement string, warden []string) (*rig, error) {
	m, err := monitor.Open(monitor.Config{
		Linux: linux.Config{Name: "bench", Warden: warden},
		Placers: func(n *linux.Node) []program.Placer {
			switch placement {
			case inCode:
				return []program.Placer{inline.New(n)}
			case inKernel:
				return []program.Placer{kernel.New(nil)}
			}
			return nil
		},
		Costs: new(calibrate.Config),
	})
	if err != nil {
		return nil, err
	}
	return &rig{Monitor: m, placement: placement}, nil
}

func (m *rig) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), subject.Patience)
	defer cancel()
	return m.Close(ctx)
}
