//go:build linux

package calibrate

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"mirador/omis/node"
	"mirador/omis/program"
)

// Config configures New.
type Config struct {
	// Node holds the dummy's threads.
	Node node.Node
	// Placers are the placements to calibrate in addition to Held.
	Placers []program.Placer
	// Beside means that a goroutine calls CalibrateAll at the start, so that Want does not wait.
	Beside bool
	// File stores the figures; "" stores none.
	File string
	// Log receives the placements that cannot be calibrated, with the reason; nil means
	// slog.Default.
	Log *slog.Logger
}

// Costs measures and keeps the costs of probes on this machine. Its methods may be called
// from any goroutine.
type Costs struct {
	config Config

	turn sync.Mutex // serialises calibrations

	mu     sync.RWMutex
	known  map[string]map[string]program.Cost // by placement and kind
	tried  map[string]bool
	failed map[string]error
	dummy  *process // nil unless a calibration runs
	closed bool

	closing chan struct{} // closed with it
	// measure returns the costs of a placement by kind.
	measure func(placement string) (map[string]program.Cost, error)
}

var _ program.Costs = (*Costs)(nil)

// New returns Costs with the figures in the file, if they belong to this machine.
func New(c Config) *Costs {
	sweep()
	k := &Costs{config: c, known: make(map[string]map[string]program.Cost), tried: make(map[string]bool), failed: make(map[string]error), closing: make(chan struct{})}
	k.measure = k.measureOnDummy
	if c.Log == nil {
		k.config.Log = slog.Default()
	}
	if c.File == "" {
		return k
	}
	if kept, err := load(c.File); err == nil {
		k.known = kept
		for name := range kept {
			k.tried[name] = true
		}
	}
	return k
}

// Cost implements program.Costs.
func (k *Costs) Cost(placement, kind string) (program.Cost, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	c, ok := k.known[placement][kind]
	return c, ok
}

// Kinds returns the kinds of places of a placement whose cost is known.
func (k *Costs) Kinds(placement string) []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Sorted(maps.Keys(k.known[placement]))
}

// Calibrate implements program.Costs.
func (k *Costs) Calibrate(placement string) {
	if done, _ := k.outcome(placement); done {
		return
	}
	if err := k.Try(placement); err != nil && !k.isClosed() {
		k.config.Log.Info("the cost of probes is only estimated, and is not subtracted from the times that they measure", "placement", placement, "error", err)
	}
}

// Want implements program.Costs.
func (k *Costs) Want(placement string) {
	if !k.config.Beside {
		k.Calibrate(placement)
	}
}

// CalibrateAll calibrates every placement whose costs are not known yet, cheapest first.
// It reports whether it measured any; it stops when Costs is closed.
func (k *Costs) CalibrateAll() (measured bool) {
	names := make([]string, 0, len(k.config.Placers)+1)
	for _, p := range k.config.Placers {
		names = append(names, p.Name())
	}
	for _, name := range append(names, Held) {
		if done, _ := k.outcome(name); done || k.isClosed() {
			continue
		}
		k.Calibrate(name)
		measured = true
	}
	return measured
}

// Refine measures again what is rough because the machine was busy. It pauses before each
// round, longer each time, and returns when nothing is rough or Costs is closed.
func (k *Costs) Refine(pause time.Duration) {
	const longest = time.Hour
	for rough := k.rough(); len(rough) > 0; rough = k.rough() {
		select {
		case <-k.closing:
			return
		case <-time.After(pause):
		}
		for _, name := range rough {
			if err := k.try(name, true); err != nil && !k.isClosed() {
				k.config.Log.Info("the cost of probes stays rough", "placement", name, "error", err)
			}
		}
		pause = min(2*pause, longest)
	}
}

// rough lists the placements with a rough cost, except those that failed since.
func (k *Costs) rough() (list []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for name, costs := range k.known {
		if k.failed[name] == nil && isRough(costs) {
			list = append(list, name)
		}
	}
	return list
}

func isRough(costs map[string]program.Cost) bool {
	for _, c := range costs {
		if c.Rough {
			return true
		}
	}
	return false
}

func (k *Costs) isClosed() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.closed
}

// Try calibrates a placement, and returns the reason if it cannot.
func (k *Costs) Try(placement string) error {
	if done, err := k.outcome(placement); done {
		return err
	}
	return k.try(placement, false)
}

// try calibrates a placement. Without again it does nothing if another call has done so.
func (k *Costs) try(placement string, again bool) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	if done, err := k.outcome(placement); done && !again {
		return err
	}
	found, err := k.measure(placement)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried[placement] = true
	if err != nil {
		k.failed[placement] = err
		return err
	}
	k.known[placement] = found
	if isRough(found) {
		k.config.Log.Info("the machine is too busy to measure well what probes cost: their cost is rough", "placement", placement)
	}
	good := maps.Clone(k.known)
	maps.DeleteFunc(good, func(_ string, costs map[string]program.Cost) bool { return isRough(costs) })
	if k.config.File == "" || len(good) == 0 {
		return nil
	}
	return save(k.config.File, good)
}

func (k *Costs) outcome(placement string) (done bool, err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tried[placement], k.failed[placement]
}

// hold stores the dummy, so that Close can end it.
func (k *Costs) hold(d *process) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errors.New("the monitor is closing down")
	}
	k.dummy = d
	return nil
}

func (k *Costs) release(d *process) {
	k.mu.Lock()
	k.dummy = nil
	k.mu.Unlock()
	d.end()
}

// Close aborts a calibration and waits until its dummy is gone.
func (k *Costs) Close() error {
	k.mu.Lock()
	if !k.closed {
		close(k.closing)
	}
	k.closed = true
	if k.dummy != nil {
		_ = k.dummy.cmd.Process.Kill() // it may have ended already
	}
	k.mu.Unlock()
	k.turn.Lock()
	defer k.turn.Unlock()
	return nil
}

// find returns the placement with a name.
func (k *Costs) find(name string) (placement, error) {
	if name == Held {
		return watches{k.config.Node}, nil
	}
	for _, p := range k.config.Placers {
		if p.Name() == name {
			return programs{p}, nil
		}
	}
	return nil, fmt.Errorf("there is no placement %s to calibrate", name)
}

// measureOnDummy runs the trials of a placement.
func (k *Costs) measureOnDummy(name string) (found map[string]program.Cost, err error) {
	p, err := k.find(name)
	if err != nil {
		return nil, err
	}
	d, err := start(k.config.Node.Identify)
	if err != nil {
		return nil, err
	}
	defer k.release(d)
	if err := k.hold(d); err != nil {
		return nil, err
	}
	groups, err := p.sites(d)
	if err != nil {
		return nil, err
	}
	found = make(map[string]program.Cost)
	for _, s := range groups {
		costs, err := try(p, d, s, name != Held) // what holding costs always depends on the other load
		if err != nil {
			return nil, err
		}
		if s.oneIn > 1 {
			s.spread(costs, found, groups)
		}
		maps.Copy(found, costs)
	}
	return found, nil
}

// try runs the trials of sites that differ only in the kind of place. If marked is set, try
// marks costs that are rough.
func try(p placement, d *process, s *sites, marked bool) (map[string]program.Cost, error) {
	list := s.trials()
	if len(list) == 0 {
		return nil, errors.New("no interval can be measured on the dummy")
	}
	remove, err := p.plant(d, list, s)
	if err != nil {
		return nil, err
	}
	rough, err := run(d, list, s.clock)
	if err := errors.Join(err, remove()); err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.timed() && len(t.measured) == 0 {
			return nil, errors.New("no interval of the dummy was measured")
		}
	}
	costs := s.costs(list)
	for kind, c := range costs {
		c.Rough = rough && marked
		costs[kind] = c
	}
	return costs, nil
}
