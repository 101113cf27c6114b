package mir

import (
	"math"
	"strconv"
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
	for child := range root.Children() {
		if !child.isGateway("placement") {
			f.unexpected(child)
			continue
		}
		probe.Placements = append(probe.Placements, f.placement(child))
	}
	return probe
}

func (e Element) isGateway(name string) bool {
	n := e.node()
	return n.name == name && n.space == GatewayNamespace
}

func (f *findings) placement(e Element) Placement {
	return Placement{Where: optional(e, "where"), Why: optional(e, "why"), Cost: f.cost(e)}
}

func (f *findings) cost(e Element) float64 {
	text := f.decimal(e, "cost")
	if text == "" || !isDecimal(text) {
		return 0
	}
	cost, err := strconv.ParseFloat(text, 64)
	if err != nil { // out of range: as much as can be said
		return math.MaxFloat64
	}
	return cost
}

func readExplain(f *findings, root Element) Document {
	explain := &Explain{Cost: f.cost(root)}
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
	for child := range e.Children() {
		if !child.is("measurement") {
			f.unexpected(child)
			continue
		}
		m.Children = append(m.Children, f.measurement(child))
	}
	return m
}
