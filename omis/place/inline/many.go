//go:build linux && amd64

package inline

import (
	"mirador/omis/program"
)

var _ program.ManyReader = (*Placer)(nil)

// AppendRows: see program.ManyReader. For consecutive stores of one process, it looks for new threads once.
func (*Placer) AppendRows(stores []program.Store, rows []program.Row, ends []int) (_ []program.Row, _ []int, err error) {
	for from := 0; from < len(stores); {
		before := len(ends)
		if rows, ends, err = stores[from].(*store).target.appendRows(stores[from:], rows, ends); err != nil {
			return nil, nil, err
		}
		from += len(ends) - before
	}
	return rows, ends, nil
}

// appendRows adds the rows of the first stores, as far as they belong to the target.
func (t *target) appendRows(stores []program.Store, rows []program.Row, ends []int) (_ []program.Row, _ []int, err error) {
	p := pace{target: t}
	defer t.release(t.hold(), &err)
	if t.broken != nil {
		return nil, nil, t.broken
	}
	t.meet()
	n, plain := t.those(stores)
	for _, one := range stores[:n] {
		if plain {
			rows = one.(*store).appendOnly(rows, &p)
		} else {
			rows = one.(*store).append(rows, &p)
		}
		ends = append(ends, len(rows))
	}
	return rows, ends, nil
}

// those returns how many of the first stores belong to the target. plain reports that each of them has at
// most one row. A separate short loop lets the processor fetch several stores at a time. The caller holds
// mu.
func (t *target) those(stores []program.Store) (n int, plain bool) {
	plain = len(t.known) == 1
	for _, one := range stores {
		s := one.(*store)
		if s.target != t {
			break
		}
		plain = plain && !s.closed && len(s.past) == 0
		n++
	}
	return n, plain
}

// pace caches the length of a tick, so that the clock is asked only once.
type pace struct {
	target *target
	known  uint64
}

func (p *pace) tick() uint64 {
	if p.known == 0 {
		p.known = p.target.tick()
	}
	return p.known
}
