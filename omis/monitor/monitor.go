package monitor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"mirador/omis/engine"
	"mirador/omis/ext/pa"
	"mirador/omis/linux"
	"mirador/omis/place/calibrate"
	"mirador/omis/program"
)

// Config describes the parts of a monitor.
type Config struct {
	Linux linux.Config
	// Placers returns the placements of programs, cheapest first. The monitor closes
	// those that have a method Close. If Placers is nil, trap is the only placement.
	Placers func(*linux.Node) []program.Placer
	// Costs configures the measurement of the placements' costs; Open fills in the node
	// and the placements. If Costs is nil, costs are unknown, and the monitor subtracts
	// no bias.
	Costs *calibrate.Config
	// Log receives the engine's log; nil discards it.
	Log *slog.Logger
}

// Monitor is an engine over the node of this machine.
type Monitor struct {
	Linux  *linux.Node     // the node without placements
	Node   program.Machine // the node as the engine sees it
	Engine *engine.Engine
	costs  *calibrate.Costs // nil if costs are unknown
}

// Open assembles a monitor.
func Open(c Config) (*Monitor, error) {
	n, err := linux.Open(c.Linux)
	if err != nil {
		return nil, err
	}
	m := &Monitor{Linux: n, Node: n}
	placed := placing{Node: n}
	if c.Placers != nil {
		placed.placers = c.Placers(n)
		m.Node = placed
	}
	if c.Costs != nil {
		costs := *c.Costs
		costs.Node, costs.Placers = n, placed.placers
		m.costs = calibrate.New(costs)
		m.Node = calibrated{placed, m.costs}
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if m.Engine, err = engine.New(m.Node, log, pa.New()); err != nil {
		return nil, errors.Join(err, m.Node.Close(context.Background()))
	}
	return m, nil
}

// CalibrateAll measures the costs of all placements whose costs are not known yet. It
// reports whether it measured any, and returns early when the monitor closes.
func (m *Monitor) CalibrateAll() bool { return m.costs != nil && m.costs.CalibrateAll() }

// RefineCosts measures again what the machine was too busy to measure well. It returns when
// all costs are precise or the monitor closes.
func (m *Monitor) RefineCosts(pause time.Duration) {
	if m.costs != nil {
		m.costs.Refine(pause)
	}
}

// Close ends the engine, and then releases the node with its placements.
func (m *Monitor) Close(ctx context.Context) error {
	return errors.Join(m.Engine.Close(ctx), m.Node.Close(ctx))
}
