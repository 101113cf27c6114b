package mir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

func (w *writer) sirRequest(r *SIRRequest) {
	w.begin(r.Root())
	for _, resource := range r.Resources {
		w.begin("resource")
		w.attribute("in", resource.In)
		w.optional("out", resource.Out)
		w.end()
	}
	w.end()
}

func (w *writer) snapshotRequest(r *SnapshotRequest) {
	w.begin(r.Root())
	w.flag("named", r.Named)
	if r.Stack != 0 {
		w.attribute("stack", strconv.Itoa(r.Stack))
	}
	if r.Goroutines {
		w.attribute("xmlns:gateway", GatewayNamespace)
		w.flag("gateway:goroutines", true)
	}
	w.end()
}

func (w *writer) instrRequest(r *InstrRequest) {
	w.begin(r.Root())
	w.flag("activated", r.Activated)
	w.flag("flush", r.Flush)
	w.wishes(r)
	if r.Region != nil {
		w.begin("codeRegion")
		w.optional("from", r.Region.From)
		w.optional("to", r.Region.To)
		w.end()
	}
	w.metrics(r.Metrics)
	for range r.Events {
		w.begin("event")
		w.end()
	}
	w.measuring(r.Measuring)
	w.entities(r.Entities)
	w.end()
}

func (w *writer) controlRequest(r *ControlRequest) {
	w.begin(r.Root())
	w.flag("flush", r.Flush)
	w.attribute("action", string(r.Action))
	w.wishes(&InstrRequest{Budget: r.Budget, Lease: r.Lease, Details: r.Details})
	for _, probe := range r.Probes {
		w.begin("probe")
		if probe.ID != "" {
			w.attribute("id", probe.ID)
		} else {
			w.attribute("xmlns:gateway", GatewayNamespace)
			w.attribute("gateway:label", probe.Label)
		}
		w.end()
	}
	w.metrics(r.Metrics)
	w.measuring(r.Measuring)
	w.entities(r.Entities)
	w.end()
}

// wishes writes the attributes of the gateway's namespace.
func (w *writer) wishes(r *InstrRequest) {
	if r.Extended() {
		w.attribute("xmlns:gateway", GatewayNamespace)
	}
	if r.Budget > 0 {
		w.attribute("gateway:budget", percent(r.Budget))
	}
	if r.Fast {
		w.attribute("gateway:clock", "fast")
	}
	if r.OneIn > 0 {
		w.attribute("gateway:sample", fmt.Sprintf("1/%d", r.OneIn))
	}
	w.percentages(r.Percentiles)
	w.lease(r.Lease)
	w.optional("gateway:label", r.Label)
	w.optional("gateway:note", r.Note)
	w.optional("gateway:key", r.Key)
	w.flag("gateway:details", r.Details)
}

func (w *writer) lease(term time.Duration) {
	if term > 0 {
		w.attribute("gateway:lease", term.String())
	}
}

// percent formats a fraction as a percentage.
func percent(share float64) string { return Decimal(Rounded(share*100, 6)) + "%" }

func (w *writer) metrics(metrics []Metric) {
	for _, metric := range metrics {
		w.begin("metric")
		w.attribute("name", metric.Name)
		w.end()
	}
}

func (w *writer) measuring(m *Measuring) {
	if m == nil {
		return
	}
	w.begin("measuring")
	w.number("delivery", m.Delivery)
	if m.Destination != nil {
		w.attribute("destination", *m.Destination)
	}
	w.number("interval", m.Interval)
	w.number("duration", m.Duration)
	for _, function := range m.Aggregates {
		w.begin("aggregate")
		w.optional("function", string(function))
		w.end()
	}
	w.end()
}

// entities writes entities in the order of kinds that the DTD demands. Entities of one kind
// keep their order, because measurement documents depend on it (MIR 6, rule 2).
func (w *writer) entities(entities []Entity) {
	inOrder := func(a, b Entity) int { return cmp.Compare(a.Kind.rank(), b.Kind.rank()) }
	if !slices.IsSortedFunc(entities, inOrder) {
		entities = slices.Clone(entities)
		slices.SortStableFunc(entities, inOrder)
	}
	for i := range entities {
		w.entity(&entities[i])
	}
}

// entity writes an entity. A process has threads or stacks (MIR 3), so entity omits the stacks
// of an entity with children.
func (w *writer) entity(e *Entity) {
	w.begin(string(e.Kind))
	w.attribute("id", e.ID)
	w.optional("name", e.Name)
	w.flag("master", e.Master)
	if len(e.Goroutines) > 0 {
		w.attribute("xmlns:gateway", GatewayNamespace)
	}
	w.entities(e.Children)
	if len(e.Children) == 0 {
		for _, frame := range e.Stack {
			w.leaf("stack", frame)
		}
	}
	for i := range e.Goroutines {
		w.goroutine(&e.Goroutines[i])
	}
	w.end()
}

func (w *writer) goroutine(g *Goroutine) {
	w.begin("gateway:goroutine")
	w.attribute("id", g.ID)
	w.attribute("state", g.State)
	w.optional("reason", g.Reason)
	w.optional("thread", g.Thread)
	for _, frame := range g.Stack {
		w.leaf("gateway:stack", frame)
	}
	w.end()
}
