package mir

import (
	"cmp"
	"math/bits"
	"slices"
)

// place is an innermost entity of a request, with the entities around it.
type place struct {
	shape
	ids    ids            // of the named entities
	sorted [kindCount]int // the ranks of the entities' kinds, then all others
	depth  int            // the number of those so far
}

// shape has bits for the kinds of the entities that a place names, and of those that it has
// the symbols * and ? for.
type shape struct{ named, every, current uint8 }

func (s shape) all() uint8 { return s.named | s.every | s.current }

// compareTo orders shapes that fit the same tuple. The one with more of the tuple's ids is the first. Then,
// by the innermost kind in which they differ, a name is before *, and * before ?, which stands for
// what the request does not have otherwise.
func (s shape) compareTo(o shape) int {
	if a, b := bits.OnesCount8(s.all()), bits.OnesCount8(o.all()); a != b {
		return cmp.Compare(b, a)
	}
	for rank := kindCount - 1; rank >= 0; rank-- {
		if a, b := s.at(rank), o.at(rank); a != b {
			return cmp.Compare(a, b)
		}
	}
	return 0
}

// at says how the shape has the kind of a rank: see compareTo.
func (s shape) at(rank int) int {
	return slices.IndexFunc([]uint8{s.named, s.every, s.current, ^s.all()}, func(kinds uint8) bool { return kinds&(1<<rank) != 0 })
}

// with returns the place of an entity inside the entity that p describes.
func (p place) with(e *Entity) place {
	rank := e.Kind.rank()
	p.sort(rank)
	switch e.ID {
	case "*":
		p.every |= 1 << rank
	case "?":
		p.current |= 1 << rank
	default:
		p.named |= 1 << rank
		p.ids[1+rank] = e.ID
	}
	return p
}

// sort adds a kind by its rank. It ignores more kinds than there are, which only an invalid request has.
func (p *place) sort(rank int) {
	if p.depth < kindCount {
		p.sorted[p.depth] = rank
		p.depth++
	}
}

// complete adds the kinds that the request does not name.
func (p place) complete() *place {
	for rank := range levels {
		if p.all()&(1<<rank) == 0 {
			p.sort(rank)
		}
	}
	return &p
}

// compare compares the ids of tuples that belong to the place.
func (p *place) compare(a, b *Tuple) int {
	for _, rank := range p.sorted {
		if x, y := *a.at(rank), *b.at(rank); x != y {
			return compareIDs(x, y)
		}
	}
	return 0
}

// finder finds the places for tuples. A request may have many places, but these have few
// shapes.
type finder struct {
	shapes []shaped
	found  []int32 // a buffer
}

// shaped has the places of a shape, by the ids of their named entities.
type shaped struct {
	shape
	places map[ids][]int32
}

func newFinder(places []*place) *finder {
	f := &finder{}
	for i, p := range places {
		at := slices.IndexFunc(f.shapes, func(s shaped) bool { return s.shape == p.shape })
		if at < 0 {
			at = len(f.shapes)
			f.shapes = append(f.shapes, shaped{p.shape, make(map[ids][]int32)})
		}
		of := f.shapes[at].places
		of[p.ids] = append(of[p.ids], int32(i))
	}
	slices.SortFunc(f.shapes, func(a, b shaped) int { return a.compareTo(b.shape) })
	return f
}

// nth returns the nth place for a tuple: those that name or have a symbol for exactly its
// ids, then those that it does not contradict, such as a symbol for an entity that the tuple
// has no id of, as in a program without processes. It returns -1 if there are not so many. The
// nth of equal tuples has the nth place, since a request may ask for a value twice.
func (f *finder) nth(t *Tuple, n int) int32 {
	f.found = f.found[:0]
	for _, exactly := range []bool{true, false} {
		for _, s := range f.shapes {
			if s.fits(t) == exactly {
				f.found = append(f.found, s.places[t.named(s.shape)]...)
			}
		}
		if n < len(f.found) {
			return f.found[n]
		}
	}
	return -1
}

// fits reports whether a tuple has ids of all entities of the shape, and none inside these.
func (s shape) fits(t *Tuple) bool {
	var has uint8
	for rank := range levels {
		if *t.at(rank) != "" {
			has |= 1 << rank
		}
	}
	return has&s.all() == s.all() && bits.Len8(has) <= bits.Len8(s.all())
}

// named returns the ids of the kinds that a shape names.
func (t *Tuple) named(s shape) (key ids) {
	for rank := range levels {
		if s.named&(1<<rank) != 0 {
			key[1+rank] = *t.at(rank)
		}
	}
	return key
}
