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
	return list, nil
}

// look places a program at each place, each of another function.
func (p programs) look(d *process, clock omis.Clock, oneIn int64) (s *sites, err error) {
	s = &sites{clock: clock, oneIn: oneIn}
	store, err := p.NewStore(d.id, omis.StoreIntervals)
	if err != nil {
		return nil, err
	}
	var all []omis.Placing
	for i, offset := range slices.Concat(begins, ends) {
		do := omis.OpStart
		if i >= len(begins) {
			do = omis.OpStop
		}
		all = append(all, d.placing(1+i, offset, omis.Op{Do: do, Clock: clock, OneIn: oneIn, Store: store}))
	}
	placed, errs := p.Place(all)
	var standing []omis.Placed
	for i, one := range placed {
		if one == nil {
			continue
		}
		standing = append(standing, one)
		kind := one.Verdict().Kind
		if i < len(begins) {
			s.begin = enter(s.begin, kind, begins[i])
		} else {
			s.end = enter(s.end, kind, ends[i-len(begins)])
		}
	}
	err = errors.Join(p.Remove(standing), store.Close())
	if len(standing) == 0 {
		err = errors.Join(errs...)
	}
	return s, err
}

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
		kind, first := omis.StoreSums, omis.Op{Do: omis.OpAdd, Value: 1}
		if t.timed() {
			kind, first = omis.StoreIntervals, omis.Op{Do: omis.OpStart, Clock: s.clock, OneIn: s.oneIn}
		}
		store, err := p.NewStore(d.id, kind)
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		stores = append(stores, store)
		first.Store = store
		all = append(all, d.placing(t.function, s.where(t), first))
		if t.timed() {
			t.rows = store.Rows
			end := find(s.end, t.end).offset
			all = append(all, d.placing(t.function, end, omis.Op{Do: omis.OpStop, Clock: s.clock, OneIn: s.oneIn, Store: store}))
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
