//go:build linux && amd64

package calibrate

import (
	"errors"
	"slices"

	"mirador/omis"
)

// placement is a way to have trials made.
type placement interface {
	// sites says of which kinds the places of the dummy's functions are; where clocks
	// differ, for each.
	sites(*process) ([]*sites, error)
	// plant probes functions for trials, until remove is called.
	plant(*process, []*trial, *sites) (remove func() error, err error)
}

// programs has programs placed.
type programs struct{ omis.Placer }

// placing is a program for a place of a function.
func (d *process) placing(function int, offset uint64, steps ...omis.Op) omis.Placing {
	return omis.Placing{Watch: omis.Watch{Event: omis.EventReachedAddr, Proc: d.id, Addr: d.at(function, offset)}, Program: steps}
}

// sites has programs placed: what kind a place is of, a placement may say only then.
func (p programs) sites(d *process) (list []*sites, err error) {
	for _, way := range []sites{
		{clock: omis.ClockOrdered}, {clock: omis.ClockFast},
		{clock: omis.ClockOrdered, oneIn: some}, {clock: omis.ClockFast, oneIn: some},
	} {
		s, err := p.look(d, way.clock, way.oneIn)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && slices.Equal(s.begin, list[0].begin) && slices.Equal(s.end, list[0].end) {
			break // nothing makes a difference
		}
		list = append(list, s)
	}
	list[0].traced, err = p.kinds(d, record(), slices.Concat(begins, ends))
	return list, err
}

// look places a program at each place, each of another function.
func (p programs) look(d *process, clock omis.Clock, oneIn int64) (s *sites, err error) {
	s = &sites{clock: clock, oneIn: oneIn}
	start := omis.Op{Do: omis.OpStart, Clock: clock, OneIn: oneIn}
	stop := omis.Op{Do: omis.OpStop, Clock: clock, OneIn: oneIn}
	filling := stop
	filling.Histogram = true
	for _, found := range []struct {
		at      *[]site
		op      omis.Op
		offsets []uint64
	}{{&s.begin, start, begins}, {&s.end, stop, ends}, {&s.filling, filling, ends}} {
		if *found.at, err = p.kinds(d, found.op, found.offsets); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// storeFor is what a step works on.
func storeFor(op omis.Op) omis.StoreKind {
	switch {
	case op.Do == omis.OpTrace:
		return omis.StoreTraces
	case op.Histogram:
		return omis.StoreHistograms
	case op.Times():
		return omis.StoreIntervals
	}
	return omis.StoreSums
}

// kinds places a step at places, each of another function.
func (p programs) kinds(d *process, op omis.Op, offsets []uint64) (list []site, err error) {
	if op.Store, err = p.NewStore(d.id, storeFor(op)); err != nil {
		return nil, err
	}
	var all []omis.Placing
	for i, offset := range offsets {
		all = append(all, d.placing(1+i, offset, op))
	}
	placed, errs := p.Place(all)
	var standing []omis.Placed
	for i, one := range placed {
		if one != nil {
			standing = append(standing, one)
			list = enter(list, one.Verdict().Kind, offsets[i])
		}
	}
	err = errors.Join(p.Remove(standing), op.Store.Close())
	if len(standing) == 0 {
		err = errors.Join(errs...)
	}
	return list, err
}

// record appends one, where some thousands are kept.
func record() omis.Op { return omis.Op{Do: omis.OpTrace, Value: 1, Room: 1 << 13} }

func (p programs) plant(d *process, list []*trial, s *sites) (remove func() error, err error) {
	var stores []omis.Store
	var standing []omis.Placed
	remove = func() error {
		errs := []error{p.Remove(standing)}
		for _, store := range stores {
			errs = append(errs, store.Close())
		}
		return errors.Join(errs...)
	}
	var all []omis.Placing
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
			last.Do = omis.OpStop
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

// begins is what is done at a trial's first place, but for the store.
func (s *sites) begins(t *trial) omis.Op {
	switch {
	case t.timed():
		return omis.Op{Do: omis.OpStart, Clock: s.clock, OneIn: s.oneIn, Histogram: s.fillsHistogram(t)}
	case s.appends(t):
		return record()
	}
	return omis.Op{Do: omis.OpAdd, Value: 1}
}
