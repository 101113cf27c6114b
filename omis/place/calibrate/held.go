//go:build linux

package calibrate

import (
	"errors"
	"sync"

	"mirador/omis/node"
	"mirador/omis/program"
)

// Held is the name of the placement that holds threads for the monitor.
const Held = "trap"

// watches lets the node hold threads. Its handlers do almost nothing: the monitor's own
// work is small compared with holding.
type watches struct{ node.Node }

func (w watches) watch(d *process, function int, offset uint64, handle func(*node.Hit)) (func() error, error) {
	return w.Watch(node.Watch{Event: node.EventReachedAddr, Proc: d.id, Addr: d.at(function, offset)}, handle)
}

// sites finds out how the node holds threads at each place.
func (w watches) sites(d *process) ([]*sites, error) {
	s := &sites{}
	for _, offset := range begins {
		how, err := w.look(d, offset)
		if err != nil {
			return nil, err
		}
		s.begin = enter(s.begin, how, offset)
	}
	for _, offset := range ends {
		how, err := w.look(d, offset)
		if err != nil {
			return nil, err
		}
		s.end = enter(s.end, how, offset)
	}
	return []*sites{s}, nil
}

// look returns how the node holds threads at a place.
func (w watches) look(d *process, offset uint64) (how string, err error) {
	var mu sync.Mutex
	cancel, err := w.watch(d, 1, offset, func(hit *node.Hit) {
		mu.Lock()
		defer mu.Unlock()
		how = hit.Held
	})
	if err != nil {
		return "", err
	}
	_, err = d.call(1, warmUp, howLong)
	err = errors.Join(err, cancel())
	mu.Lock()
	defer mu.Unlock()
	return how, err
}

// stopwatch times intervals like a timer of the monitor.
type stopwatch struct {
	mu    sync.Mutex
	began int64
	row   program.Row
}

func (c *stopwatch) start(hit *node.Hit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = hit.Now()
}

func (c *stopwatch) stop(hit *node.Hit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.row.Count++
	c.row.Sum = c.row.Sum.Add(program.Uint128{Lo: uint64(max(hit.Time-c.began, 0))})
}

func (c *stopwatch) rows() ([]program.Row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []program.Row{c.row}, nil
}

func (w watches) plant(d *process, list []*trial, s *sites) (remove func() error, err error) {
	var cancels []func() error
	remove = func() error {
		var errs []error
		for _, cancel := range cancels {
			errs = append(errs, cancel())
		}
		return errors.Join(errs...)
	}
	set := func(function int, offset uint64, handle func(*node.Hit)) error {
		cancel, err := w.watch(d, function, offset, handle)
		if err == nil {
			cancels = append(cancels, cancel)
		}
		return err
	}
	for _, t := range list {
		begin := func(*node.Hit) {}
		if t.timed() {
			c := &stopwatch{}
			begin, t.rows = c.start, c.rows
			err = set(t.function, find(s.end, t.end).offset, c.stop)
		}
		if err = errors.Join(err, set(t.function, s.where(t), begin)); err != nil {
			return nil, errors.Join(err, remove())
		}
	}
	return remove, nil
}
