//go:build linux && amd64

package kernel_test

import (
	"testing"

	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// newRig makes a monitor that places programs in the kernel, or executes all requests by trap.
func newRig(t testing.TB, placement string, g *rig.Target) *rig.Monitor {
	t.Helper()
	var placer rig.NewPlacer
	if placement == kernel.Name {
		placer = inKernel
	}
	return rig.Open(t, linux.Config{Name: "here"}, placer, g)
}

func inKernel(t testing.TB, _ *linux.Node) program.Placer { return newPlacer(t) }
