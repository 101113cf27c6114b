package mir

import "slices"

// Values are what a measurement document says of one probe: its tuples, and of
// its last defining request (MIR 6) what their order and their ids depend on.
type Values struct {
	ProbeID   string
	Metrics   int      // how many the request names
	Functions int      // how many statistics; 0: no aggregation
	Entities  []Entity // as requested; none: every id there is goes into the document
	Tuples    []Tuple
}

// Tuple is a value measured, or an aggregation of values. An id is "" for null.
type Tuple struct {
	SiteID, NodeID, CommunicatorID, ProcessID, ThreadID string

	Metric   int    // index of the metric in the request
	Function int    // index of the statistic in the request, 0 without aggregation
	Value    string // a decimal; "" for a value that cannot be had
	Sample   *Sample
	Spread   *Spread
}

// Compress makes the measurement document of some probes, in the order given, by
// the rules of MIR 6. Whoever knows the requests can tell from it what each
// value is, since four things hold that MIR's text leaves open:
//
//   - Ids that are left out because the request names them are told by position:
//     there is one element for each named entity, in the request's order, even
//     if nothing was measured for it. Only a leaf with a single value has no
//     element of its own around it.
//   - An entity that is in the document has all its values there, metric by metric
//     and statistic by statistic; one that is missing is an element without value.
//   - An element that holds others has one id at most: there is a level of nesting for each
//     attribute that elements are merged by.
//   - Only neighbours are merged, so that order is never lost. Under * and ?
//     entities stand in the numeric order of their ids.
//
// With aggregation the statistics are over all the entities together: metric by
// metric and statistic by statistic, those that name an entity with its ids.
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
	return &Measurement{Children: all} // MIR 6: a root without any attribute
}

// elements are the top-level elements of one probe.
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

// aggregated are the elements of statistics, which keep all ids they have.
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

// merge puts neighbours with the same id under one element with that id, level by
// level from kind on.
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

// nest puts elements under one with an id. A single element takes the id itself, since only
// several are replaced by one (MIR 6, rule 3), unless it is such a replacement already: an
// element that holds others has the id they were merged by, and no second one.
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

// id is the attribute for a kind of entity.
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

func (t *Tuple) id(kind EntityKind) string {
	switch kind {
	case Site:
		return t.SiteID
	case Node:
		return t.NodeID
	case Communicator:
		return t.CommunicatorID
	case Process:
		return t.ProcessID
	}
	return t.ThreadID
}

// kinds are the levels of a measurement document, outermost first.
func kinds() []EntityKind { return []EntityKind{Site, Node, Communicator, Process, Thread} }

// rank is the place of a kind among the levels.
func (k EntityKind) rank() int { return slices.Index(kinds(), k) }

func (k EntityKind) inner() EntityKind { return kinds()[k.rank()+1] }
