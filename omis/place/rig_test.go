//go:build linux && amd64

// Package place_test contains the tests that all placements must pass.
package place_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// asRegistrar is the argument by which the test binary becomes the process that sets uprobes.
const asRegistrar = "registrar"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asRegistrar {
		if err := registrar.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if what := os.Getenv(tracerEnv); what != "" {
		fmt.Println(traceUntilKilled(what))
		return
	}
	goleak.VerifyTestMain(m)
}

// placers makes the placers of all placements except trap, which has none.
var placers = map[string]rig.NewPlacer{
	kernel.Name: func(t testing.TB, n *linux.Node) program.Placer {
		p := kernel.New([]string{self(t), asRegistrar})
		p.DateBy(n.Now)
		p.CheckBy(n.Boundaries)
		return closed(t, p)
	},
	inline.Name: func(t testing.TB, n *linux.Node) program.Placer { return closed(t, inline.New(n)) },
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// closed closes a placer when the test ends.
func closed[P interface {
	program.Placer
	Close() error
}](t testing.TB, p P) P {
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newRig(t testing.TB, placement string, g *rig.Target) *rig.Monitor {
	t.Helper()
	return rig.Open(t, linux.Config{Name: "here"}, placers[placement], g)
}
