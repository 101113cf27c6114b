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

// Measured is the measurement document of some probes, in the given order. Encode sorts and
// compresses the values while it writes them, by the rules of MIR 6. A reader who knows the
// requests can identify every value; see Decompress. For that, Encode fixes five points that
// the text of MIR leaves open:
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
//   - A value that several entities of the request stand for has the place of one that names its
//     entity, else that of *, else that of ?.
//
// With aggregation, the statistics cover all entities together: metric by metric and statistic
// by statistic. Statistics that name an entity carry its ids.
type Measured struct {
	Probes []Values
	Named  bool   // a single probe has its id, too, because the request does not name it
	Notice string // of the gateway: why no more values will follow
	About  *Occurrence
}

// ids are the ids of an element: of its probe, and of an entity of each kind.
type ids [1 + kindCount]string

// compression writes elements by MIR 6, rule 3. The ids around some elements are passed down
// until it is known whether these are one element, which takes the ids itself, or several.
type compression struct {
	*writer
	notice string      // for the root
	about  *Occurrence // for the root
}

func (w *writer) measured(d *Measured) {
	c := &compression{w, d.Notice, d.About}
	if len(d.Probes) == 1 && !d.Named {
		c.values(&d.Probes[0], ids{})
		return
	}
	root := c.open(ids{})
	for i := range d.Probes {
		c.values(&d.Probes[i], ids{d.Probes[i].ProbeID})
	}
	c.close(root)
}

// values writes the elements of one probe.
func (c *compression) values(v *Values, around ids) {
	if v.Functions > 0 {
		elements := v.aggregated()
		c.nest(len(elements), around, func(around ids) {
			for i := range elements {
				c.element(&elements[i], around)
			}
		})
		return
	}
	g := newGrouping(c, v)
	all := g.spans()
	c.nest(g.count(g.forest, all)+len(g.unrequested), around, func(around ids) {
		g.siblings(g.forest, all, around)
		for _, i := range g.unrequested {
			t := &v.Tuples[i]
			c.leaf(t.ids(around), t)
		}
	})
}

// nest writes some elements with ids around them. A single element gets the ids; several are
// nested in an element of their own (MIR 6, rule 3).
func (c *compression) nest(elements int, around ids, write func(around ids)) {
	if elements == 1 {
		write(around)
		return
	}
	n := c.open(around)
	write(ids{})
	c.close(n)
}

// open begins an element for each id, because an element with others inside has "only the
// attribute k"; without ids, one element. It returns their number.
func (c *compression) open(around ids) (n int) {
	for i, id := range around {
		if id != "" {
			c.begin(measurementName)
			c.attribute(idNames[i], id)
			c.noticed(false)
			n++
		}
	}
	if n == 0 {
		c.begin(measurementName)
		c.noticed(false)
		n = 1
	}
	return n
}

func (c *compression) close(n int) {
	for range n {
		c.end()
	}
}

// leaf writes an element with a value.
func (c *compression) leaf(around ids, t *Tuple) {
	c.begin(measurementName)
	for i, id := range around {
		c.optional(idNames[i], id)
	}
	c.optional("value", t.Value)
	c.noticed(t.Sample != nil || t.Spread != nil)
	c.sample(t.Sample)
	c.spread(t.Spread)
	c.end()
}

// noticed declares the gateway's namespace if an element needs it, and writes the attributes of
// the root, which is the first element.
func (c *compression) noticed(extended bool) {
	if extended || c.notice != "" || c.about != nil {
		c.attribute("xmlns:gateway", GatewayNamespace)
	}
	c.optional("gateway:notice", c.notice)
	c.occurrence(c.about)
	c.notice, c.about = "", nil
}

// element writes an element and those inside it.
func (c *compression) element(m *Measurement, around ids) {
	for _, kind := range kinds() {
		if id := *m.id(kind); id != "" {
			around[1+kind.rank()] = id
		}
	}
	if len(m.Children) == 0 {
		c.leaf(around, &Tuple{Value: m.Value, Sample: m.Sample, Spread: m.Spread})
		return
	}
	n := c.open(around)
	for i := range m.Children {
		c.element(&m.Children[i], ids{})
	}
	c.close(n)
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

// ids returns the ids of a tuple over others.
func (t *Tuple) ids(over ids) ids {
	for rank := range levels {
		if id := *t.at(rank); id != "" {
			over[1+rank] = id
		}
	}
	return over
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
func (t *Tuple) id(kind EntityKind) *string { return t.at(kind.rank()) }

// at returns the id for the kind of a rank.
func (t *Tuple) at(rank int) *string {
	switch rank {
	case 0:
		return &t.SiteID
	case 1:
		return &t.NodeID
	case 2:
		return &t.CommunicatorID
	case 3:
		return &t.ProcessID
	}
	return &t.ThreadID
}

// kindCount is the number of levels of a measurement document.
const kindCount = 5

var levels = [kindCount]EntityKind{Site, Node, Communicator, Process, Thread}

// kinds returns the levels of a measurement document, outermost first.
func kinds() []EntityKind { return levels[:] }

// rank returns the index of a kind among the levels.
func (k EntityKind) rank() int { return slices.Index(kinds(), k) }

func (k EntityKind) inner() EntityKind { return levels[k.rank()+1] }

const measurementName = "measurement"

var idNames = [1 + kindCount]string{"probeId", "siteId", "nodeId", "communicatorId", "processId", "threadId"}
