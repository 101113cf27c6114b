//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"mirador/omis/host/proc"
	"mirador/omis/program"
)

// openBunches makes the bunches. The caller holds Placer.mu.
func (p *Placer) openBunches(targets map[unit]*target, used map[unit]int) error {
	bunches := make(map[uint32]*bunch)
	spots := make(map[unit]*placed)
	return each(p.estate, bunchPrefix, func(n int, r bunchRecord) error {
		p.serial = max(p.serial, uint32(n))
		b := &bunch{placer: p, target: targets[r.Target], path: r.Path, serial: uint32(n)}
		var err error
		if b.target != nil {
			b.link, err = p.estate.folder.Link(nameOf(linkName, n))
		}
		if b.target == nil || err != nil {
			return p.estate.book.Delete(keyOf(bunchPrefix, n)) // its monitor came no further
		}
		if b.target.isGone() || proc.Alive(b.target.proc) != nil {
			return p.withdraw(b, r.Members)
		}
		s := &shape{steps: r.Steps, cpu: r.CPU, kinds: r.Kinds, loads: r.Loads, threads: r.Threads}
		if b.shape, err = p.load(s); err != nil {
			return err
		}
		for _, m := range r.Members {
			if spots[m.Spot] == nil {
				spots[m.Spot] = p.openSpot(b, m)
				used[m.Spot] = spots[m.Spot].units()
			}
			b.members = append(b.members, spots[m.Spot])
		}
		bunches[b.serial] = b
		return p.succeed(b, bunches[r.After], used)
	})
}

// withdraw takes uprobes out that were meant for a program which is not there any more.
// Where the process executes the same file again, they stand in that.
func (p *Placer) withdraw(b *bunch, members []memberRecord) error {
	for _, m := range members {
		p.left.orphans = append(p.left.orphans, program.Orphan{
			Proc: b.target.proc,
			What: fmt.Sprintf("a program at %#x, where the process does not execute that any more", p.siteOf(b, m).asked),
		})
	}
	return b.withdraw(b.gone())
}

// siteOf is where a uprobe stands. Former monitors have not always written down what was
// asked for.
func (p *Placer) siteOf(b *bunch, m memberRecord) site {
	s := site{addr: p.slab.word(m.Spot, spotAddr/8).Load(), path: b.path, file: m.File, offset: m.Offset, code: m.Code}
	if s.asked = p.slab.word(m.Spot, spotAsked/8).Load(); s.asked == 0 {
		s.asked = s.addr
	}
	_, s.quick = measure(m.Code)
	return s
}

// openSpot makes what happens at one address of what the slab says.
func (p *Placer) openSpot(b *bunch, m memberRecord) *placed {
	word := func(offset int16) uint64 { return p.slab.word(m.Spot, int(offset)/8).Load() }
	s := p.siteOf(b, m)
	pl := &placed{
		placer: p, target: b.target, site: s, shape: b.shape, spot: m.Spot,
		bunch: b, active: word(spotLink) != 0, lasts: true,
	}
	b.target.users++
	b.target.stand(&pl.site)
	at := where{b.target.proc, s.asked}
	p.left.placed[at] = append(p.left.placed[at], pl)
	return pl
}

// succeed completes what a monitor was about when it was killed: to have a bunch take
// over from a former one, all of whose spots but some that are off are in both.
func (p *Placer) succeed(b, former *bunch, used map[unit]int) error {
	if former == nil {
		return nil
	}
	for _, pl := range b.members {
		pl.bunch, pl.former = b, former.serial
		pl.tell()
	}
	if err := former.close(former.gone()); err != nil {
		return err
	}
	for _, pl := range b.members {
		pl.former = 0
		pl.tell()
	}
	for _, pl := range former.members {
		if pl.bunch == former { // it was being taken away
			delete(used, pl.spot)
			p.abandon(pl)
		}
	}
	return nil
}

// abandon gives back what belongs to a program whose uprobe is out.
func (p *Placer) abandon(pl *placed) {
	p.slab.word(pl.spot, spotLink/8).Store(0)
	pl.target.fall(&pl.site)
	pl.target.users--
	p.claim(pl)
}

// claim takes a program out of the leftovers.
func (p *Placer) claim(pl *placed) {
	at := where{pl.target.proc, pl.site.asked}
	p.left.placed[at] = slices.DeleteFunc(p.left.placed[at], func(other *placed) bool { return other == pl })
}

// standing finds what a former monitor has left at an address that does the same; it is
// ours from now on. The caller holds mu.
func (p *Placer) standing(what *program.Placing, named []thread) *placed {
	w, steps := &what.Watch, what.Program
	if !lasts(steps) {
		return nil
	}
	for _, pl := range p.left.placed[where{w.Proc, w.Addr}] {
		if !pl.target.isGone() && pl.does(steps, named) && pl.isSet() {
			p.claim(pl)
			return pl
		}
	}
	return nil
}

// does tells whether the spot says the same as a program.
func (pl *placed) does(steps program.Program, named []thread) bool {
	if pl.shape.String() != shapeOf(steps, named).String() {
		return false
	}
	word := func(offset int16) uint64 { return pl.placer.slab.word(pl.spot, int(offset)/8).Load() }
	for i, op := range steps {
		if word(spotStep(i)) != cellAndMark(op) || word(spotStep(i)+8) != valueOf(op) {
			return false
		}
	}
	for i, th := range named {
		if word(spotThread(len(steps), i)) != uint64(th.tid) || word(spotThread(len(steps), i)+8) != th.ticks {
			return false
		}
	}
	return true
}

// isSet tells whether the uprobe is there.
func (pl *placed) isSet() bool {
	var now [1]byte
	n, err := proc.ReadMemory(pl.target.proc.PID, pl.site.addr, now[:])
	return n == 1 && err == nil && now[0] != pl.site.code[0]
}

// orphan is what is to be said of a program that nobody wants any more.
func (pl *placed) orphan() program.Orphan {
	return program.Orphan{Proc: pl.target.proc, What: fmt.Sprintf("a program at %#x", pl.site.asked)}
}
