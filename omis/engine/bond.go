package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// bond is requests that open and close intervals in the same cells. In a process all of
// them are executed in one place, where they find each other's intervals.
type bond struct {
	members []*candidate
	level   int  // of the placement: its index among those of the node, or their number for the monitor
	because *csr // the request that cannot run where it is cheaper
}

// bonds are those of some requests of one tool, with what is there already and belongs
// to them.
func (e *Engine) bonds(p *process, fresh []*candidate) []*bond {
	others := e.bonded(p, fresh)
	kin := make(kinship)
	for _, k := range fresh {
		kin.join(k.csr.intervals())
	}
	for _, c := range others {
		kin.join(c.intervals())
	}
	var list []*bond
	byCell := make(map[service.Cell]*bond)
	for _, k := range fresh {
		cell := kin.of(k.csr)
		b := byCell[cell]
		if cell == nil || b == nil {
			b = &bond{}
			list, byCell[cell] = append(list, b), b
		}
		b.add(k)
	}
	for _, c := range others {
		if b := byCell[kin.of(c)]; b != nil {
			b.addOther(e, c, p)
		}
	}
	for _, b := range list {
		b.skip(p.node().can.Placers)
	}
	return list
}

// bonded are the requests of the same tool that have intervals and are executed in the
// process, or nowhere in particular.
func (e *Engine) bonded(p *process, fresh []*candidate) []*csr {
	if !slices.ContainsFunc(fresh, func(k *candidate) bool { return len(k.csr.intervals()) > 0 }) {
		return nil
	}
	among := make(map[*csr]bool, len(fresh))
	for _, k := range fresh {
		among[k.csr] = true
	}
	var list []*csr
	for _, o := range fresh[0].csr.tool.own(omis.ClassCSR) {
		if c := o.(*csr); c.runsIn(p) && !among[c] && len(c.intervals()) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// runsIn tells whether a request is executed in a process, or nowhere in particular.
func (c *csr) runsIn(p *process) bool {
	return c.subs[p] != nil || c.event.source.kind == 0 && c.active.Load()
}

// add takes a request in that gets its place only now, or wakes up in it.
func (b *bond) add(k *candidate) {
	k.bond = b
	b.members = append(b.members, k)
	if k.placed != nil {
		b.raise(k.placed.level, k.csr)
	}
}

// addOther takes a request in that is enabled.
func (b *bond) addOther(e *Engine, c *csr, p *process) {
	s := c.subs[p]
	switch {
	case s == nil || s.placed == nil:
		b.raise(len(p.node().can.Placers), c)
		return
	case !s.placed.Stands():
		return
	}
	k := &candidate{subscription: s}
	if err := k.compile(e); err != nil {
		b.raise(len(p.node().can.Placers), c)
	}
	b.add(k)
}

func (b *bond) raise(level int, c *csr) {
	if level > b.level {
		b.level, b.because = level, c
	}
}

// leave has the bond wait for the placement after one where a request cannot run.
func (b *bond) leave(level int, c *csr) {
	if b.level == level {
		b.level, b.because = level+1, c
	}
}

// explain says why the others of a bond do not run in a placement either.
func (b *bond) explain(placement string) {
	for _, k := range b.members {
		if !slices.ContainsFunc(k.refused, func(o obstacle) bool { return o.placement == placement }) {
			k.refuse(placement, hinders([]*csr{b.because}, "%s, which opens or closes the same intervals, cannot run there", b.because.token))
		}
	}
}

// skip says why the bond is not even tried where it is cheapest.
func (b *bond) skip(placers []program.Placer) {
	for _, k := range b.members {
		switch {
		case b.level == 0 || k.placed != nil && k.placed.level == b.level:
		case b.level == len(placers):
			k.refuse("", hinders([]*csr{b.because}, "%s, which opens or closes the same intervals, is executed by the monitor", b.because.token))
		default:
			k.refuse("", hinders([]*csr{b.because}, "%s, which opens or closes the same intervals, runs in the placement %s", b.because.token, placers[b.level].Name()))
		}
	}
}

// kinship leads from each cell to another one, and in the end to the one that stands for
// all that are bound together.
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

// of is the cell that stands for those of a request; nil where it has no intervals.
func (k kinship) of(c *csr) service.Cell {
	if cells := c.intervals(); len(cells) > 0 {
		return k.root(cells[0])
	}
	return nil
}
