package mir

import (
	"maps"
	"slices"
)

// grouping assigns the tuples of a probe to the entities of its request.
type grouping struct {
	values *Values
	forest []Entity
}

// place is an entity of the request with the entities around it, and the tuples measured for
// it.
type place struct {
	path []*Entity
	held []Tuple
	seen map[Tuple]bool // the tuples of held without values; nil while there are few
}

// anyEntity replaces the entities of a request that names none: MIR 4 then assumes the
// question mark at every level.
func anyEntity() []Entity {
	var inner []Entity
	for _, kind := range slices.Backward(kinds()) {
		inner = []Entity{{Kind: kind, ID: "?", Children: inner}}
	}
	return inner
}

// symbolic reports whether the request names the entity by * or ?. The document must then
// contain the ids.
func (e *Entity) symbolic() bool { return e.ID == "*" || e.ID == "?" }

func (g *grouping) build() []Measurement {
	places := leaves(g.forest, nil)
	var unrequested []Measurement
	for i := range g.values.Tuples {
		t := &g.values.Tuples[i]
		if p := placeOf(places, t); p != nil {
			p.hold(t)
		} else {
			unrequested = append(unrequested, t.element())
		}
	}
	own := make([][]Tuple, len(places))
	for i, p := range places {
		own[i] = p.held
	}
	return append(g.siblings(g.forest, own), unrequested...)
}

// leaves returns the innermost entities of a request, in its order.
func leaves(forest []Entity, path []*Entity) []*place {
	var found []*place
	for i := range forest {
		e := &forest[i]
		here := append(slices.Clip(path), e)
		if len(e.Children) == 0 {
			found = append(found, &place{path: here})
			continue
		}
		found = append(found, leaves(e.Children, here)...)
	}
	return found
}

// placeOf returns the first place that takes a tuple and does not hold it yet; a request may
// ask for a value twice. A tuple without ids, such as from a program without processes,
// matches a symbol.
func placeOf(places []*place, t *Tuple) *place {
	for _, fits := range []func(*place, *Tuple) bool{(*place).takes, (*place).tolerates} {
		for _, p := range places {
			if fits(p, t) && !p.has(t) {
				return p
			}
		}
	}
	return nil
}

// takes reports whether a tuple was measured for exactly the entities that the place names.
func (p *place) takes(t *Tuple) bool {
	for _, e := range p.path {
		if *t.id(e.Kind) == "" {
			return false
		}
	}
	innermost := p.path[len(p.path)-1].Kind
	for _, kind := range kinds()[innermost.rank()+1:] {
		if *t.id(kind) != "" {
			return false
		}
	}
	return p.tolerates(t)
}

// tolerates reports whether a tuple does not contradict the place.
func (p *place) tolerates(t *Tuple) bool {
	for _, e := range p.path {
		if !e.symbolic() && *t.id(e.Kind) != e.ID {
			return false
		}
	}
	return true
}

func (p *place) has(t *Tuple) bool {
	if p.seen != nil {
		return p.seen[t.valueless()]
	}
	return slices.ContainsFunc(p.held, func(h Tuple) bool { return h.valueless() == t.valueless() })
}

// hold adds a tuple. Most places hold few tuples, so the map is built only when there are
// more.
func (p *place) hold(t *Tuple) {
	const few = 8
	p.held = append(p.held, *t)
	if len(p.held) == few {
		p.seen = make(map[Tuple]bool, 2*few)
		for i := range p.held {
			p.seen[p.held[i].valueless()] = true
		}
	} else if p.seen != nil {
		p.seen[t.valueless()] = true
	}
}

func (t *Tuple) valueless() Tuple {
	bare := *t
	bare.Value, bare.Sample, bare.Spread = "", nil, nil
	return bare
}

// siblings returns the elements for entities at the same level. own has the tuples of each of
// their leaves.
func (g *grouping) siblings(forest []Entity, own [][]Tuple) []Measurement {
	var elements []Measurement
	for i := range forest {
		e := &forest[i]
		n := count(e)
		if e.symbolic() {
			elements = append(elements, g.symbol(e, own[:n])...)
		} else {
			elements = append(elements, g.named(e, own[:n]))
		}
		own = own[n:]
	}
	return elements
}

// count returns the number of leaves of an entity.
func count(e *Entity) int {
	if len(e.Children) == 0 {
		return 1
	}
	n := 0
	for i := range e.Children {
		n += count(&e.Children[i])
	}
	return n
}

// named returns the element at a named entity's position.
func (g *grouping) named(e *Entity, own [][]Tuple) Measurement {
	inside := g.inside(e, own)
	if len(e.Children) == 0 && len(inside) == 1 {
		return inside[0]
	}
	return Measurement{Children: inside}
}

// symbol returns the elements for * or ?: one for each id, in numeric order.
func (g *grouping) symbol(e *Entity, own [][]Tuple) []Measurement {
	var elements []Measurement
	byID := split(own, e.Kind)
	for _, id := range slices.SortedFunc(maps.Keys(byID), compareIDs) {
		inside := g.inside(e, byID[id])
		if id == "" { // null: no id to merge by
			elements = append(elements, inside...)
			continue
		}
		around := Measurement{}
		*around.id(e.Kind) = id
		elements = append(elements, nest(inside, around)...)
	}
	return elements
}

// split divides the tuples of leaves by their id at a level.
func split(own [][]Tuple, kind EntityKind) map[string][][]Tuple {
	byID := map[string][][]Tuple{}
	for leaf, tuples := range own {
		for _, t := range tuples {
			id := *t.id(kind)
			if byID[id] == nil {
				byID[id] = make([][]Tuple, len(own))
			}
			byID[id][leaf] = append(byID[id][leaf], t)
		}
	}
	return byID
}

// inside returns the elements below an entity: its children's elements, or its values.
func (g *grouping) inside(e *Entity, own [][]Tuple) []Measurement {
	if len(e.Children) == 0 {
		return g.rows(own[0])
	}
	return g.siblings(e.Children, own)
}

// rows returns the values of one entity, metric by metric (MIR 6, rule 2). Tuples that differ
// in ids that the request does not ask for get separate rows.
func (g *grouping) rows(held []Tuple) []Measurement {
	metrics := g.values.Metrics
	rows := make([]Measurement, metrics, max(metrics, len(held)))
	began := map[Tuple]int{}
	for _, t := range held {
		if t.Metric < 0 || t.Metric >= metrics {
			continue
		}
		ids := t.valueless()
		ids.Metric, ids.Function = 0, 0
		row, ok := began[ids]
		if !ok {
			row = len(began) * metrics
			began[ids] = row
			rows = append(rows, make([]Measurement, max(0, row+metrics-len(rows)))...)
		}
		m := &rows[row+t.Metric]
		m.Value, m.Sample, m.Spread = t.Value, t.Sample, t.Spread
	}
	return rows
}
