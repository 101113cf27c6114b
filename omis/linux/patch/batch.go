//go:build linux && amd64

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
	"mirador/omis/node"
)

// Batch is a set of changes that are made together.
type Batch struct {
	site    *Site
	program Program
	patches []node.Patch
	points  []*Point
	errs    []error
	changes []*change
	removed []*Point // to be removed
	arenas  []*arena // to be mapped
	writes  []write
}

// Program describes the process to a batch.
type Program interface {
	// Surveyor returns the surveyor of the module that contains an address.
	Surveyor(addr uint64) (*Surveyor, error)
	// Vacancies proposes page-aligned addresses for a mapping near an address, the best first, and
	// none within the taken ranges.
	Vacancies(near, size uint64, taken []Range) []uint64
}

// Range is a range of addresses.
type Range struct{ Begin, End uint64 }

// change replaces a place by another, adds one or removes one.
type change struct {
	former *place // nil if there was none
	detour.Window
	exclusive string // see node.Patched
	points    []*Point
	fresh     []int // indices of the patches that it adds
	// sleepers locates the goroutines that may have been interrupted within the window. It is nil
	// if this is impossible, or was excluded before.
	sleepers *landing.Goroutines
	made     *place // the new place; nil if there is none
	err      error  // why the change failed
}

type write struct {
	addr  uint64
	bytes []byte
}

// Prepare does the work that is possible before the process is stopped. It changes neither the
// process nor the site's tables.
func (s *Site) Prepare(list []node.Patch, program Program) *Batch {
	b := s.batch(list, program)
	// Remove changes that were only looked up, and get no new patch.
	b.changes = slices.DeleteFunc(b.changes, func(c *change) bool { return len(c.fresh) == 0 })
	for _, c := range b.changes {
		c.err = b.build(c)
	}
	return b
}

// batch assigns patches to changes.
func (s *Site) batch(list []node.Patch, program Program) *Batch {
	b := &Batch{site: s, program: program, patches: list, points: make([]*Point, len(list)), errs: make([]error, len(list))}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(list[i].Addr, list[j].Addr) })
	for _, i := range order {
		b.errs[i] = b.add(i)
	}
	return b
}

// Judge returns the reasons why no code can be put at addresses, nil for an address where it can, if there is code at
// all the others of them and nowhere else.
func Judge(addrs []uint64, program Program) []error {
	list := make([]node.Patch, len(addrs))
	for i, addr := range addrs {
		list[i].Addr = addr
	}
	return new(Site).batch(list, program).errs
}

// Survey returns the reason why no code can be put at an address, nil if it can. The note tells
// users what they must know about such code.
func (s *Site) Survey(addr uint64, program Program) (note string, err error) {
	v, err := program.Surveyor(addr)
	if err != nil {
		return "", err
	}
	found, err := v.find(addr)
	return found.note, err
}

// add assigns a patch to a change.
func (b *Batch) add(i int) error {
	patch := b.patches[i]
	v, err := b.program.Surveyor(patch.Addr)
	if err != nil {
		return err
	}
	f, n, spot, err := v.locate(patch.Addr)
	if err != nil {
		return err
	}
	after, why := v.afterFirst(f, n, spot, patch.Reads)
	if why == nil {
		if why = b.join(i, v, f, n+1, after, nil); why == nil {
			return nil
		}
	}
	if err = b.join(i, v, f, n, spot, why); err == nil {
		return nil
	}
	if late, n, e := v.later(f, n, spot, patch.Reads); e == nil {
		if e := b.join(i, v, f, n, late, nil); e == nil {
			return nil
		}
	}
	return err
}

// join adds a patch to the change whose window contains the instruction before which the code runs.
// why is the reason why the code does not run after the first instruction of its function.
func (b *Batch) join(i int, v *Surveyor, f *function, n int, spot spot, why error) (err error) {
	c := b.changing(spot.at, spot.at+1)
	if c == nil || !c.begins(spot.at) {
		switch {
		case c != nil:
			spot.Window, err = v.reach(f, n, &c.Window)
		case !spot.afterFirst:
			spot.Window, err = v.reach(f, n, nil)
		}
		if err != nil {
			return err
		}
		if c, err = b.changeFor(v, f, n, spot.Window); err != nil {
			return err
		}
		if !c.begins(spot.at) {
			return errors.New("it is padding, which is never executed")
		}
		c.exclusive = v.exclusive(&c.Window, why)
	}
	b.points[i] = &Point{
		site: b.site, patch: b.patches[i], at: spot.at, entry: spot.entry, ends: spot.ends, pushed: spot.pushed, late: spot.late,
	}
	if spot.late {
		c.sleepers = v.listed()
	}
	c.points, c.fresh = append(c.points, b.points[i]), append(c.fresh, i)
	return nil
}

// changing returns the change whose window overlaps a range. If only an existing place overlaps,
// changing adds a change of that place to the batch. It returns nil if neither exists.
func (b *Batch) changing(begin, end uint64) *change {
	for i := len(b.changes) - 1; i >= 0 && b.changes[i].End() > begin; i-- {
		if b.changes[i].Addr < end {
			return b.changes[i]
		}
	}
	stands := b.site.covering(begin, end)
	if len(stands) == 0 {
		return nil
	}
	p := stands[0]
	c := &change{former: p, Window: p.Window, exclusive: p.exclusive, points: slices.Clone(p.points)}
	b.insert(c)
	return c
}

// insert inserts a change; the list is in ascending order.
func (b *Batch) insert(c *change) {
	i := len(b.changes)
	for i > 0 && b.changes[i-1].Addr > c.Addr {
		i--
	}
	b.changes = slices.Insert(b.changes, i, c)
}

// begins reports whether a displaced instruction begins at an address.
func (c *change) begins(at uint64) bool {
	for i := range c.Ends {
		if c.Start(i) == at {
			return true
		}
	}
	return false
}

// changeFor returns the change that covers a window. It creates or widens a change if necessary.
func (b *Batch) changeFor(v *Surveyor, f *function, n int, w detour.Window) (*change, error) {
	c := b.changing(w.Addr, w.End())
	switch {
	case c == nil:
		c = &change{Window: w, sleepers: v.sleepers(&w)}
		b.insert(c)
		return c, nil
	case c.Addr <= w.Addr && c.End() >= w.End() && c.begins(w.Addr):
		return c, nil
	}
	union, err := v.reach(f, n, &c.Window)
	if err != nil {
		return nil, err
	}
	wider := &change{former: c.former, Window: union, points: c.points, fresh: c.fresh, sleepers: v.sleepers(&union)}
	if c.former != nil && union.Addr != c.Addr || b.overlaps(wider, c) {
		return nil, errors.New("the code of another request is too near")
	}
	b.changes = slices.DeleteFunc(b.changes, func(other *change) bool { return other == c })
	b.insert(wider)
	return wider, nil
}

// overlaps reports whether a change overlaps others than instead, the change that it replaces.
func (b *Batch) overlaps(c, instead *change) bool {
	return slices.ContainsFunc(b.changes, func(other *change) bool {
		return other != instead && other.Addr < c.End() && c.Addr < other.End()
	}) || slices.ContainsFunc(b.site.covering(c.Addr, c.End()), func(p *place) bool { return p != c.former })
}

// build encodes the place of a change in a block of an arena.
func (b *Batch) build(c *change) error {
	sortPoints(c.points)
	a, err := b.arenaFor(c)
	if err != nil {
		return err
	}
	for _, p := range c.points {
		if p.change == 0 {
			p.change, _ = a.takeSwitch()
			// The switch may still be on from its former point.
			b.writes = append(b.writes, write{p.change, []byte{0}})
		}
	}
	made := &place{Window: c.Window, exclusive: c.exclusive, points: c.points}
	at := a.code() + a.used + uint64(made.stubOffset())
	stub, err := made.encode(at)
	if err != nil {
		return err
	}
	room, ok := a.take(made.stubOffset() + len(stub))
	if !ok {
		if a, err = b.plan(c.Addr, uint64(align(made.stubOffset()+len(stub)))); err != nil {
			return err
		}
		room, _ = a.take(made.stubOffset() + len(stub))
	}
	made.block = room
	if now := room.addr + uint64(made.stubOffset()); now != at {
		again, err := made.encode(now)
		if err != nil {
			return err
		}
		if len(again) != len(stub) {
			return fmt.Errorf("its code has %d bytes, and then %d", len(stub), len(again))
		}
		stub = again
	}
	c.made = made
	b.writes = append(b.writes, write{room.addr, append(made.describe(), stub...)})
	return nil
}

// mostStub is the largest size of an ordinary stub with its description.
const mostStub = 512

// arenaFor returns an arena near a change that has enough switches, and space for an ordinary stub:
// the size of the stub is not known yet.
func (b *Batch) arenaFor(c *change) (*arena, error) {
	for _, a := range slices.Concat(b.site.arenas, b.arenas) {
		if a.near(c.Addr) && a.used+mostStub <= a.size && a.next+uint64(len(c.points)) <= a.switches {
			return a, nil
		}
	}
	return b.plan(c.Addr, uint64(len(b.changes)*mostStub))
}

// plan adds an arena to the batch.
func (b *Batch) plan(near, room uint64) (*arena, error) {
	var taken []Range
	for _, a := range b.arenas {
		taken = append(taken, Range{a.addr, a.end()})
	}
	a := newArena(room)
	for _, a.addr = range b.program.Vacancies(near, a.length(), taken) {
		if a.near(near) {
			b.arenas = append(b.arenas, a)
			return a, nil
		}
	}
	return nil, errors.New("there is no room within reach of it")
}
