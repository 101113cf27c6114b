package placing

import (
	"slices"

	"mirador/omis/program"
	"mirador/omis/service"
)

// bond is a group of requests that open and close intervals in the same cells, or record beginnings and ends of
// executions in the same traces. In a process all of them run in one place, because an interval can be closed only
// where it was opened, and because a reader pairs records: those of two places are read at different times, and two
// places may disagree about which thread it was that has ended since.
type bond struct {
	members []*candidate
	level   int      // index in the node's placements; their number, one more than the last index, means the monitor
	because *Request // the request that cannot run where it is cheaper
}

// bonds divides requests of one tool into bonds, together with requests that are executed already.
func (x *Placing) bonds(p *Process, fresh []*candidate) []*bond {
	others := bonded(p, fresh)
	kin := make(kinship)
	for _, k := range fresh {
		kin.join(k.Request.Owner.Intervals())
	}
	for _, c := range others {
		kin.join(c.Owner.Intervals())
	}
	var list []*bond
	byCell := make(map[service.Cell]*bond)
	for _, k := range fresh {
		cell := kin.of(k.Request)
		b := byCell[cell]
		if cell == nil || b == nil {
			b = &bond{}
			list, byCell[cell] = append(list, b), b
		}
		b.add(k)
	}
	for _, c := range others {
		if b := byCell[kin.of(c)]; b != nil {
			b.addOther(x, c, p)
		}
	}
	for _, b := range list {
		b.skip(p.machine().Can.Placers)
	}
	return list
}

// bonded returns the tool's other requests that open or close intervals, and that are executed in the
// process or are enabled for events that occur in no process.
func bonded(p *Process, fresh []*candidate) []*Request {
	if !slices.ContainsFunc(fresh, func(k *candidate) bool { return len(k.Request.Owner.Intervals()) > 0 }) {
		return nil
	}
	among := make(map[*Request]bool, len(fresh))
	for _, k := range fresh {
		among[k.Request] = true
	}
	var list []*Request
	for _, c := range fresh[0].Request.Tool.Requests() {
		if c.runsIn(p) && !among[c] && len(c.Owner.Intervals()) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// runsIn reports whether a request is executed in a process, or is enabled and its event occurs in no
// process.
func (c *Request) runsIn(p *Process) bool {
	return c.Subs[p] != nil || c.Watch.Event == 0 && c.Owner.Enabled()
}

// add adds a request that is about to be placed, or whose program rests.
func (b *bond) add(k *candidate) {
	k.bond = b
	b.members = append(b.members, k)
	if k.placed != nil {
		b.raise(k.placed.level, k.Request)
	}
}

// addOther adds a request that is executed already.
func (b *bond) addOther(x *Placing, c *Request, p *Process) {
	s := c.Subs[p]
	switch {
	case s == nil || s.placed == nil:
		b.raise(len(p.machine().Can.Placers), c)
		return
	case !s.placed.Stands():
		return
	}
	k := &candidate{Subscription: s}
	if err := k.compile(x); err != nil {
		b.raise(len(p.machine().Can.Placers), c)
	}
	b.add(k)
}

func (b *bond) raise(level int, c *Request) {
	if level > b.level {
		b.level, b.because = level, c
	}
}

// leave moves the bond on to the next placement, because a request cannot run in this one.
func (b *bond) leave(level int, c *Request) {
	if b.level == level {
		b.level, b.because = level+1, c
	}
}

// explain adds to the other requests of a bond why they do not run in a placement.
func (b *bond) explain(placement string) {
	for _, k := range b.members {
		if !slices.ContainsFunc(k.refused, func(o obstacle) bool { return o.placement == placement }) {
			k.refuse(placement, Hinders([]*Request{b.because}, "%s, which opens or closes the same intervals, cannot run there", b.because.Token))
		}
	}
}

// skip adds to the requests of a bond why cheaper placements are not tried.
func (b *bond) skip(placers []program.Placer) {
	for _, k := range b.members {
		switch {
		case b.level == 0 || k.placed != nil && k.placed.level == b.level:
		case b.level == len(placers):
			k.refuse("", Hinders([]*Request{b.because}, "%s, which opens or closes the same intervals, is executed by the monitor", b.because.Token))
		default:
			k.refuse("", Hinders([]*Request{b.because}, "%s, which opens or closes the same intervals, runs in the placement %s", b.because.Token, placers[b.level].Name()))
		}
	}
}

// kinship is a union-find structure: it leads from each cell, in steps, to the cell that represents its
// bond.
type kinship map[service.Cell]service.Cell

func (k kinship) root(cell service.Cell) service.Cell {
	for next := k[cell]; next != nil && next != cell; next = k[cell] {
		cell = next
	}
	return cell
}

func (k kinship) join(cells []service.Cell) {
	for _, cell := range cells {
		k[k.root(cell)] = k.root(cells[0])
	}
}

// of returns the cell that represents the bond of a request, nil if the request has no intervals.
func (k kinship) of(c *Request) service.Cell {
	if cells := c.Owner.Intervals(); len(cells) > 0 {
		return k.root(cells[0])
	}
	return nil
}
