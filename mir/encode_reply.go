package mir

import (
	"strconv"

	"mirador/omis"
)

func (w *writer) snapshot(s *Snapshot) {
	w.begin(s.Root())
	w.entities(s.Entities)
	w.end()
}

func (w *writer) probe(p *Probe) {
	w.begin(p.Root())
	w.attribute("id", p.ID)
	if len(p.Placements) > 0 || p.Cost != nil || p.Notice != "" {
		w.attribute("xmlns:gateway", GatewayNamespace)
	}
	w.optional("gateway:notice", p.Notice)
	for _, placement := range p.Placements {
		w.begin("gateway:placement")
		w.placement(placement)
		w.end()
	}
	w.spent(p.Cost)
	w.end()
}

func (w *writer) placement(p omis.Placement) {
	w.optional("where", p.Name)
	w.optional("why", p.Why)
	w.cost("cost", p.Cost)
	w.flag("measured", p.Measured)
	w.flag("rough", p.Rough())
	w.cost("bias", float64(p.Bias))
}

// spent writes the cost of a probe.
func (w *writer) spent(c *Cost) {
	if c == nil {
		return
	}
	w.begin("gateway:cost")
	w.attribute("hits", strconv.FormatInt(c.Hits, 10))
	w.attribute("lost", strconv.FormatInt(c.Lost, 10))
	w.attribute("rate", Decimal(Rounded(c.Rate, 0)))
	w.attribute("perHit", Decimal(Rounded(c.PerHit, 1)))
	w.attribute("share", percent(c.Share))
	w.attribute("dilation", Decimal(Rounded(c.Dilation, 6)))
	if c.Budget > 0 {
		w.attribute("budget", percent(c.Budget))
	}
	w.flag("rough", c.Rough)
	w.end()
}

func (w *writer) explain(e *Explain) {
	w.begin(e.Root())
	w.attribute("xmlns", GatewayNamespace)
	w.attribute("matches", strconv.Itoa(e.Matches))
	w.cost("cost", e.Cost)
	w.flag("rough", e.Rough)
	w.optional("notice", e.Notice)
	for _, request := range e.Requests {
		w.begin("request")
		w.placement(request.Placement)
		w.characters(request.Text)
		w.end()
	}
	w.end()
}

func (w *writer) errors(e *Errors) {
	w.begin(e.Root())
	for _, message := range e.Messages {
		w.leaf("error", message)
	}
	w.end()
}

func (w *writer) measurement(m *Measurement) {
	w.begin(m.Root())
	w.optional("probeId", m.ProbeID)
	w.optional("siteId", m.SiteID)
	w.optional("nodeId", m.NodeID)
	w.optional("communicatorId", m.CommunicatorID)
	w.optional("processId", m.ProcessID)
	w.optional("threadId", m.ThreadID)
	w.optional("value", m.Value)
	if m.Notice != "" || m.Sample != nil || m.Spread != nil || m.Occurrence != nil {
		w.attribute("xmlns:gateway", GatewayNamespace)
	}
	w.optional("gateway:notice", m.Notice)
	w.occurrence(m.Occurrence)
	w.sample(m.Sample)
	w.spread(m.Spread)
	for i := range m.Children {
		w.measurement(&m.Children[i])
	}
	w.end()
}
