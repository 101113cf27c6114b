//go:build linux && amd64

package calibrate

import (
	"errors"

	"mirador/omis"
)

// placement is a way to have trials made.
type placement interface {
	// sites says of which kinds the places of the dummy's functions are.
	sites(*process) (*sites, error)
	// plant probes functions for trials, until remove is called.
	plant(*process, []*trial, *sites) (remove func() error, err error)
}

// programs has programs placed.
type programs struct{ omis.Placer }

// placing is a program for a place of a function.
func (d *process) placing(function int, offset uint64, steps ...omis.Op) omis.Placing {
	return omis.Placing{Watch: omis.Watch{Event: omis.EventReachedAddr, Proc: d.id, Addr: d.at(function, offset)}, Program: steps}
}

func (p programs) sites(d *process) (*sites, error) {
	s := &sites{begin: make(map[string]uint64), end: make(map[string]uint64)}
	var refused error
	look := func(offsets []uint64, to map[string]uint64, do omis.Operation) {
		for _, offset := range offsets {
			verdicts, errs := p.Judge([]omis.Placing{d.placing(1, offset, omis.Op{Do: do})})
			if refused = errors.Join(refused, errs[0]); errs[0] == nil {
				s.enter(verdicts[0].Kind, to, offset)
			}
		}
	}
	look(begins, s.begin, omis.OpStart)
	look(ends, s.end, omis.OpStop)
	if len(s.kinds) == 0 {
		return nil, refused
	}
	return s, nil
}

func (p programs) plant(d *process, list []*trial, s *sites) (remove func() error, err error) {
	var stores []omis.Store
	var standing []omis.Placed
	remove = func() error {
		var errs []error
		if len(standing) > 0 {
			errs = append(errs, p.Remove(standing))
		}
		for _, store := range stores {
			errs = append(errs, store.Close())
		}
		return errors.Join(errs...)
	}
	var all []omis.Placing
	for _, t := range list {
		kind, first := omis.StoreSums, omis.Op{Do: omis.OpAdd, Value: 1}
		if t.timed() {
			kind, first = omis.StoreIntervals, omis.Op{Do: omis.OpStart}
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
			all = append(all, d.placing(t.function, s.end[t.end], omis.Op{Do: omis.OpStop, Store: store}))
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
