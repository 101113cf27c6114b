//go:build linux

package calibrate

import (
	"errors"
	"slices"

	"mirador/omis/node"
	"mirador/omis/program"
)

// placement makes the trials of one placement: programs does it by a Placer, watches by
// the node.
type placement interface {
	// sites returns the kinds of the places in the dummy's functions, separately for each
	// clock if clocks differ.
	sites(*process) ([]*sites, error)
	// plant sets the probes of the trials, until remove is called.
	plant(*process, []*trial, *sites) (remove func() error, err error)
}

// programs places programs.
type programs struct{ program.Placer }

// placing returns a program for a place of a function.
func (d *process) placing(function int, offset uint64, steps ...program.Op) program.Placing {
	return program.Placing{Watch: node.Watch{Event: node.EventReachedAddr, Proc: d.id, Addr: d.at(function, offset)}, Program: steps}
}

// sites places programs, because some placements report the kind of a place only then.
func (p programs) sites(d *process) (list []*sites, err error) {
	for _, way := range []sites{
		{clock: program.ClockOrdered}, {clock: program.ClockFast},
		{clock: program.ClockOrdered, oneIn: some}, {clock: program.ClockFast, oneIn: some},
	} {
		s, err := p.look(d, way.clock, way.oneIn, len(list) == 0)
		if err != nil && len(list) == 0 {
			// If no time can be measured, hits may still be counted.
			if counting := p.lookCounting(d); len(counting.counted) > 0 {
				return []*sites{counting}, nil
			}
		}
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && slices.Equal(s.begin, list[0].begin) && slices.Equal(s.end, list[0].end) {
			break // the clock and sampling make no difference
		}
		list = append(list, s)
	}
	return list, nil
}

// wanted is a step, the places to try it at, and the list of kinds to fill.
type wanted struct {
	found   *[]site
	op      program.Op
	offsets []uint64
}

// look places all steps at all places at once, each in another function: setting and
// removing uprobes takes a while, independently of their number.
func (p programs) look(d *process, clock program.Clock, oneIn int64, traced bool) (s *sites, err error) {
	s = &sites{clock: clock, oneIn: oneIn}
	start := program.Op{Do: program.OpStart, Clock: clock, OneIn: oneIn}
	stop := program.Op{Do: program.OpStop, Clock: clock, OneIn: oneIn}
	filling := stop
	filling.Histogram = true
	all := []wanted{{&s.begin, start, begins}, {&s.end, stop, ends}}
	if p.tellsApart(d, stop, filling) {
		all = append(all, wanted{&s.filling, filling, ends})
	}
	if traced {
		all = append(all, wanted{&s.traced, record(), slices.Concat(begins, ends)})
	}
	return s, p.find(d, all)
}

// lookCounting finds the kinds of places where programs can count.
func (p programs) lookCounting(d *process) *sites {
	s := &sites{}
	_ = p.find(d, []wanted{{&s.counted, program.Op{Do: program.OpAdd, Value: 1}, slices.Concat(begins, ends)}}) // on failure, counted stays empty
	return s
}

// tellsApart reports whether two steps at one place have different kinds.
func (p programs) tellsApart(d *process, one, other program.Op) bool {
	v, _ := p.Judge([]program.Placing{d.placing(1, ends[0], one), d.placing(1, ends[0], other)})
	return v[0].Kind != v[1].Kind
}

func (p programs) find(d *process, all []wanted) (err error) {
	var stores []program.Store
	var list []program.Placing
	for _, w := range all {
		store, err := p.NewStore(d.id, storeFor(w.op))
		if err != nil {
			return errors.Join(err, closeAll(stores))
		}
		stores, w.op.Store = append(stores, store), store
		for _, offset := range w.offsets {
			list = append(list, d.placing(1+len(list), offset, w.op))
		}
	}
	placed, errs := p.Place(list)
	var standing []program.Placed
	for _, w := range all {
		for i, offset := range w.offsets {
			if one := placed[i]; one != nil {
				standing = append(standing, one)
				*w.found = enter(*w.found, one.Verdict().Kind, offset)
			}
		}
		placed = placed[len(w.offsets):]
	}
	err = errors.Join(p.Remove(standing), closeAll(stores))
	if len(standing) == 0 {
		err = errors.Join(errs...)
	}
	return err
}

func closeAll(stores []program.Store) error {
	var errs []error
	for _, store := range stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}

// storeFor returns the kind of store that a step changes.
func storeFor(op program.Op) program.StoreKind {
	switch {
	case op.Do == program.OpTrace:
		return program.StoreTraces
	case op.Histogram:
		return program.StoreHistograms
	case op.Times():
		return program.StoreIntervals
	}
	return program.StoreSums
}

// record returns a step that appends a record; some thousands are kept.
func record() program.Op { return program.Op{Do: program.OpTrace, Value: 1, Room: 1 << 13} }

func (p programs) plant(d *process, list []*trial, s *sites) (remove func() error, err error) {
	var stores []program.Store
	var standing []program.Placed
	remove = func() error {
		return errors.Join(p.Remove(standing), closeAll(stores))
	}
	var all []program.Placing
	for _, t := range list {
		first := s.begins(t)
		if first.Store, err = p.NewStore(d.id, storeFor(first)); err != nil {
			return nil, errors.Join(err, remove())
		}
		stores = append(stores, first.Store)
		all = append(all, d.placing(t.function, s.where(t), first))
		if t.timed() {
			t.rows = first.Store.Rows
			last := first
			last.Do = program.OpStop
			all = append(all, d.placing(t.function, s.until(t), last))
		}
	}
	placed, errs := p.Place(all)
	for _, one := range placed {
		if one != nil {
			standing = append(standing, one)
			one.SetActive(true)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, remove())
	}
	return remove, nil
}

// begins returns the step at a trial's first place, without its store.
func (s *sites) begins(t *trial) program.Op {
	switch {
	case t.timed():
		return program.Op{Do: program.OpStart, Clock: s.clock, OneIn: s.oneIn, Histogram: s.fillsHistogram(t)}
	case s.appends(t):
		return record()
	}
	return program.Op{Do: program.OpAdd, Value: 1}
}
