package mir

import "slices"

// Values are the measurements of one probe, with the parts of its last defining request (MIR
// 6) that determine the order and the ids in the document.
type Values struct {
	ProbeID   string
	Metrics   int      // number of metrics that the request names
	Functions int      // number of statistics; 0: no aggregation
	Entities  []Entity // as requested; none: the document contains every id
	Tuples    []Tuple
}

// Tuple is a measured value or an aggregate of values. An id is "" for null.
type Tuple struct {
	SiteID, NodeID, CommunicatorID, ProcessID, ThreadID string

	Metric   int    // index of the metric in the request
	Function int    // index of the statistic in the request, 0 without aggregation
	Value    string // a decimal; "" for a value that is not available
	Sample   *Sample
	Spread   *Spread
}

// Compress builds the measurement document of some probes, in the given order, by the rules of
// MIR 6. A reader who knows the requests can identify every value. For that, Compress fixes
// four points that the text of MIR leaves open:
//
//   - Where the request names entities, the document omits their ids and identifies them by
//     position: it has one element for each named entity, in the request's order, even if
//     there is no value. Only a leaf with a single value has no enclosing element.
//   - An entity in the document has all its values there, metric by metric and statistic by
//     statistic; a missing value is an element without value.
//   - An element with children has at most one id: each attribute by which elements are merged
//     makes one level of nesting.
//   - Only neighbours are merged, so order is never lost. Under * and ? entities are sorted by
//     the numbers in their ids.
//
// With aggregation, the statistics cover all entities together: metric by metric and statistic
// by statistic. Statistics that name an entity carry its ids.
func Compress(probes []Values) *Measurement {
	var all []Measurement
	for i := range probes {
		elements := probes[i].elements()
		if len(probes) > 1 {
			elements = nest(elements, Measurement{ProbeID: probes[i].ProbeID})
		}
		all = append(all, elements...)
	}
	if len(all) == 1 {
		return &all[0]
	}
	return &Measurement{Children: all} // MIR 6: a root without attributes
}

// elements returns the top-level elements of one probe.
func (v *Values) elements() []Measurement {
	if v.Functions > 0 {
		return v.aggregated()
	}
	g := grouping{values: v, forest: v.Entities}
	if len(g.forest) == 0 {
		g.forest = anyEntity()
	}
	return g.build()
}

// aggregated returns the elements of the statistics, with all ids that they have.
func (v *Values) aggregated() []Measurement {
	elements := make([]Measurement, v.Metrics*v.Functions)
	for _, t := range v.Tuples {
		if i := t.Metric*v.Functions + t.Function; i >= 0 && i < len(elements) {
			elements[i] = t.element()
		}
	}
	return merge(elements, Site)
}

func (t *Tuple) element() Measurement {
	return Measurement{
		SiteID: t.SiteID, NodeID: t.NodeID, CommunicatorID: t.CommunicatorID,
		ProcessID: t.ProcessID, ThreadID: t.ThreadID, Value: t.Value, Sample: t.Sample, Spread: t.Spread,
	}
}

// merge puts neighbours with the same id under one element with that id, level by level from
// kind inwards.
func merge(elements []Measurement, kind EntityKind) []Measurement {
	var merged []Measurement
	for rest := elements; len(rest) > 0; {
		id := *rest[0].id(kind)
		n := 1
		for id != "" && n < len(rest) && *rest[n].id(kind) == id {
			n++
		}
		if n == 1 {
			merged = append(merged, rest[0])
		} else {
			for i := range n {
				*rest[i].id(kind) = ""
			}
			group := Measurement{Children: rest[:n:n]}
			if kind != Thread {
				group.Children = merge(group.Children, kind.inner())
			}
			*group.id(kind) = id
			merged = append(merged, group)
		}
		rest = rest[n:]
	}
	if kind == Thread {
		return merged
	}
	return merge(merged, kind.inner())
}

// nest puts elements under a new element with the ids of around. A single element takes the
// ids itself, because MIR 6, rule 3, replaces only several elements by one. The exception is a
// single element with children and an id: it already has the id by which its children were
// merged, and must not have a second one.
func nest(elements []Measurement, around Measurement) []Measurement {
	if len(elements) != 1 || len(elements[0].Children) > 0 && elements[0].identified() {
		around.Children = elements
		return []Measurement{around}
	}
	only := elements[0]
	if around.ProbeID != "" {
		only.ProbeID = around.ProbeID
	}
	for _, kind := range kinds() {
		if id := *around.id(kind); id != "" {
			*only.id(kind) = id
		}
	}
	return []Measurement{only}
}

// identified reports whether the element has any id.
func (m *Measurement) identified() bool {
	return m.ProbeID != "" || slices.ContainsFunc(kinds(), func(kind EntityKind) bool { return *m.id(kind) != "" })
}

// id returns the attribute for a kind of entity.
func (m *Measurement) id(kind EntityKind) *string {
	switch kind {
	case Site:
		return &m.SiteID
	case Node:
		return &m.NodeID
	case Communicator:
		return &m.CommunicatorID
	case Process:
		return &m.ProcessID
	}
	return &m.ThreadID
}

// id returns the id for a kind of entity.
func (t *Tuple) id(kind EntityKind) *string {
	switch kind {
	case Site:
		return &t.SiteID
	case Node:
		return &t.NodeID
	case Communicator:
		return &t.CommunicatorID
	case Process:
		return &t.ProcessID
	}
	return &t.ThreadID
}

// kinds returns the levels of a measurement document, outermost first.
func kinds() []EntityKind { return []EntityKind{Site, Node, Communicator, Process, Thread} }

// rank returns the index of a kind among the levels.
func (k EntityKind) rank() int { return slices.Index(kinds(), k) }

func (k EntityKind) inner() EntityKind { return kinds()[k.rank()+1] }
