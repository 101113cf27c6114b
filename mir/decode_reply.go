package mir

import (
	"math"
	"strconv"
	"strings"

	"mirador/omis"
)

func readSnapshot(f *findings, root Element) Document {
	snapshot := &Snapshot{}
	for child := range root.Children() {
		if !isEntity(child) {
			f.unexpected(child)
			continue
		}
		snapshot.Entities = append(snapshot.Entities, f.entity(child))
	}
	return snapshot
}

func readProbe(f *findings, root Element) Document {
	probe := &Probe{ID: f.required(root, "id")}
	notice, _ := ours(root, "notice")
	probe.Notice = notice.Value
	for child := range root.Children() {
		switch {
		case child.isGateway("placement"):
			probe.Placements = append(probe.Placements, f.placement(child))
		case child.isGateway("cost"):
			probe.Cost = f.spent(child)
		default:
			f.unexpected(child)
		}
	}
	return probe
}

// spent reads the cost of a probe.
func (f *findings) spent(e Element) *Cost {
	c := &Cost{
		Rate: f.number(e, "rate"), PerHit: f.number(e, "perHit"), Dilation: f.number(e, "dilation"),
		Share: f.share(e, "share"), Budget: f.share(e, "budget"), Rough: f.boolean(e, "rough"),
	}
	if n := f.integer(e, "hits", 0); n != nil {
		c.Hits = *n
	}
	if n := f.integer(e, "lost", 0); n != nil {
		c.Lost = *n
	}
	return c
}

// share returns a percentage as a fraction, 0 if the attribute is absent.
func (f *findings) share(e Element, name string) float64 {
	text := strings.TrimSuffix(optional(e, name), "%")
	share, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || !isDecimal(text)) {
		f.add(e.Pos(), "%s is %s; a percentage was expected", name, Quote(text))
		return 0
	}
	return share / 100
}

func (e Element) isGateway(name string) bool {
	n := e.node()
	return n.name == name && n.space == GatewayNamespace
}

// placement omits the attribute rough, which the others determine.
func (f *findings) placement(e Element) omis.Placement {
	f.boolean(e, "rough")
	return omis.Placement{
		Name: optional(e, "where"), Why: optional(e, "why"), Measured: f.boolean(e, "measured"),
		Cost: f.number(e, "cost"), Bias: int64(f.number(e, "bias")),
	}
}

// number returns a decimal attribute, 0 if it is absent.
func (f *findings) number(e Element, name string) float64 {
	text := f.decimal(e, name)
	if text == "" || !isDecimal(text) {
		return 0
	}
	cost, err := strconv.ParseFloat(text, 64)
	if err != nil { // out of range: return the largest number
		return math.MaxFloat64
	}
	return cost
}

func readExplain(f *findings, root Element) Document {
	explain := &Explain{Cost: f.number(root, "cost"), Rough: f.boolean(root, "rough"), Notice: optional(root, "notice")}
	if matches := f.integer(root, "matches", 0); matches != nil {
		explain.Matches = int(min(*matches, math.MaxInt32))
	}
	for child := range root.Children() {
		if !child.isGateway("request") {
			f.unexpected(child)
			continue
		}
		explain.Requests = append(explain.Requests, ExplainedRequest{Text: child.Text(), Placement: f.placement(child)})
	}
	return explain
}

func readErrors(f *findings, root Element) Document {
	errors := &Errors{}
	for child := range root.Children() {
		if !child.is("error") {
			f.unexpected(child)
			continue
		}
		errors.Messages = append(errors.Messages, child.Text())
	}
	return errors
}

func readMeasurement(f *findings, root Element) Document {
	measurement := f.measurement(root)
	return &measurement
}

func (f *findings) measurement(e Element) Measurement {
	m := Measurement{
		ProbeID:        optional(e, "probeId"),
		SiteID:         optional(e, "siteId"),
		NodeID:         optional(e, "nodeId"),
		CommunicatorID: optional(e, "communicatorId"),
		ProcessID:      optional(e, "processId"),
		ThreadID:       optional(e, "threadId"),
		Value:          f.decimal(e, "value"),
	}
	notice, _ := ours(e, "notice")
	m.Notice, m.Sample, m.Occurrence = notice.Value, f.sampled(e), f.occurrence(e)
	for child := range e.Children() {
		switch {
		case child.is("measurement"):
			m.Children = append(m.Children, f.measurement(child))
		case child.isGateway("percentile"):
			m.Spread = m.Spread.with(f.percentile(child))
		default:
			f.unexpected(child)
		}
	}
	return m
}
