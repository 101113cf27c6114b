package mir

import (
	"slices"
	"sort"
)

// grouping writes the values of a probe without statistics, entity by entity. Its tuples are
// sorted by index, so that nothing is copied.
type grouping struct {
	*compression
	values      *Values
	forest      []level
	places      []*place
	order       []int32 // indices of tuples: place by place, in each by requested ids, other ids and metric
	ends        []int   // of each place in order
	unrequested []int32 // indices of the tuples that no entity of the request asks for
}

// level is an entity of a request.
type level struct {
	rank     int // of its kind
	symbolic bool
	inside   []level
	leaves   int
	place    *place // of a leaf
}

// span is a part of order.
type span struct{ from, to int }

func newGrouping(c *compression, v *Values) *grouping {
	g := &grouping{compression: c, values: v}
	entities := v.Entities
	if len(entities) == 0 {
		entities = anyEntity()
	}
	g.forest = g.levels(entities, place{})
	g.sort()
	return g
}

// anyEntity replaces the entities of a request that names none: MIR 4 then assumes the
// question mark at every level.
func anyEntity() []Entity {
	var inner []Entity
	for i := kindCount - 1; i >= 0; i-- {
		inner = []Entity{{Kind: levels[i], ID: "?", Children: inner}}
	}
	return inner
}

// symbolic reports whether the request names the entity by * or ?. The document must then
// contain the ids.
func (e *Entity) symbolic() bool { return e.ID == "*" || e.ID == "?" }

// levels converts entities, and appends their leaves to the places.
func (g *grouping) levels(entities []Entity, around place) []level {
	list := make([]level, len(entities))
	for i := range entities {
		e, l := &entities[i], &list[i]
		l.rank, l.symbolic = e.Kind.rank(), e.symbolic()
		here := around.with(e)
		if len(e.Children) == 0 {
			l.leaves, l.place = 1, here.complete()
			g.places = append(g.places, l.place)
			continue
		}
		l.inside = g.levels(e.Children, here)
		for j := range l.inside {
			l.leaves += l.inside[j].leaves
		}
	}
	return list
}

// spans returns the parts of order of all places.
func (g *grouping) spans() []span {
	all := make([]span, len(g.places))
	from := 0
	for i, to := range g.ends {
		all[i] = span{from, to}
		from = to
	}
	return all
}

func (g *grouping) tuple(i int) *Tuple { return &g.values.Tuples[g.order[i]] }

// id returns the id of a kind, by its rank, of the tuple at a position in order.
func (g *grouping) id(i int, rank int) string { return *g.tuple(i).at(rank) }

// siblings writes the elements for entities at the same level. own has the tuples of each of
// their leaves. The ids around are for a single element.
func (g *grouping) siblings(forest []level, own []span, around ids) {
	for i := range forest {
		l := &forest[i]
		if l.symbolic {
			g.symbol(l, own[:l.leaves], around)
		} else {
			g.named(l, own[:l.leaves], around)
		}
		own = own[l.leaves:]
	}
}

// named writes the element at a named entity's position.
func (g *grouping) named(l *level, own []span, around ids) {
	if l.place != nil && g.countRows(own[0]) == 1 {
		g.rows(l, own[0], around)
		return
	}
	n := g.open(around)
	g.inside(l, own, ids{})
	g.close(n)
}

// symbol writes the elements for * or ?: one for each id, in numeric order.
func (g *grouping) symbol(l *level, own []span, around ids) {
	rest, part := append([]span(nil), own...), make([]span, len(own))
	for g.take(l.rank, rest, part) {
		id := g.firstID(l.rank, part)
		if id == "" { // null: no id to merge by
			g.inside(l, part, around)
			continue
		}
		with := around
		with[1+l.rank] = id
		g.nest(g.countInside(l, part), with, func(around ids) { g.inside(l, part, around) })
	}
}

// take moves the tuples with the lowest id of a kind from rest to part. It reports false if
// there are no tuples.
func (g *grouping) take(rank int, rest, part []span) bool {
	least, any := "", false
	for _, s := range rest {
		if s.from == s.to {
			continue
		}
		if id := g.id(s.from, rank); !any || compareIDs(id, least) < 0 {
			least, any = id, true
		}
	}
	for i := range rest {
		s := &rest[i]
		from := s.from
		for s.from < s.to && g.id(s.from, rank) == least {
			s.from++
		}
		part[i] = span{from, s.from}
	}
	return any
}

// firstID returns the id of a kind of the first tuple.
func (g *grouping) firstID(rank int, own []span) string {
	for _, s := range own {
		if s.from < s.to {
			return g.id(s.from, rank)
		}
	}
	return ""
}

// inside writes the elements below an entity: its children's elements, or its values.
func (g *grouping) inside(l *level, own []span, around ids) {
	if l.place != nil {
		g.rows(l, own[0], around)
		return
	}
	g.siblings(l.inside, own, around)
}

// rows writes the values of one entity, metric by metric (MIR 6, rule 2). Tuples that differ
// in ids that the request does not ask for get separate rows.
func (g *grouping) rows(l *level, s span, around ids) {
	for {
		next := s.from
		for metric := range g.values.Metrics {
			var value Tuple
			if next < s.to && g.tuple(next).Metric == metric && g.alike(l, s.from, next) {
				value = *g.tuple(next)
				next++
			}
			g.leaf(around, &value)
		}
		if s.from = next; s.from == s.to {
			return
		}
	}
}

// alike reports whether two tuples of a place have the same ids.
func (g *grouping) alike(l *level, i, j int) bool {
	if i == j {
		return true
	}
	return l.place.compare(g.tuple(i), g.tuple(j)) == 0
}

// count returns the number of the elements that siblings writes; 2 means several.
func (g *grouping) count(forest []level, own []span) (n int) {
	for i := range forest {
		l := &forest[i]
		if l.symbolic {
			n += g.countSymbol(l, own[:l.leaves])
		} else {
			n++
		}
		if n > 1 {
			return 2
		}
		own = own[l.leaves:]
	}
	return n
}

func (g *grouping) countInside(l *level, own []span) int {
	if l.place != nil {
		return g.countRows(own[0])
	}
	return g.count(l.inside, own)
}

// countRows counts the values of one entity. With one metric, tuples differ in other ids.
func (g *grouping) countRows(s span) int {
	if g.values.Metrics != 1 {
		return g.values.Metrics
	}
	return max(1, s.to-s.from)
}

// countSymbol counts the ids, and the elements inside of the entity without an id.
func (g *grouping) countSymbol(l *level, own []span) (n int) {
	null, first := make([]span, len(own)), ""
	for i, s := range own {
		from := s.from + sort.Search(s.to-s.from, func(i int) bool { return g.id(s.from+i, l.rank) != "" })
		null[i] = span{s.from, from}
		if from == s.to {
			continue
		}
		if id := g.id(from, l.rank); first != "" && id != first || g.id(s.to-1, l.rank) != id {
			return 2
		}
		first, n = g.id(from, l.rank), 1
	}
	if slices.ContainsFunc(null, func(s span) bool { return s.from < s.to }) {
		n += g.countInside(l, null)
	}
	return n
}
