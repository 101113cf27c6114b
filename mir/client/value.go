package client

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"mirador/mir"
)

// Value is a value of a measurement document, with the names that the document leaves out
// because the request has them.
type Value struct {
	Probe string
	// The entity that was measured. Ids are "" where the value is one of several entities.
	Site, Node, Communicator, Process, Thread string

	Metric   string
	Function mir.Function // the statistic, mir.Last without aggregation
	Text     string       // a decimal; "" if nothing was measured yet, or it cannot be had

	Sample      *mir.Sample      // of a probe that times one execution in N
	Percentiles []mir.Percentile // if the request asks for them
}

// Float returns the value as a number; ok is false if there is none.
func (v *Value) Float() (f float64, ok bool) {
	f, err := strconv.ParseFloat(v.Text, 64)
	return f, err == nil
}

// Reading is what probes have measured at one time.
type Reading struct {
	Values []Value
	Notice string // why the probe measures no longer, if the gateway has stopped it

	// Number is the number of a document of a stream, which ascends by one from document to
	// document. Lost is the number of documents before this one that the reader has missed;
	// below 0: their number is not known.
	Number uint64
	Lost   int

	Document *mir.Measurement
}

// Value returns the values of the probe.
func (p *Probe) Value(ctx context.Context) (*Reading, error) { return p.client.Value(ctx, p) }

// Value returns the values of several probes, by one request for each application, and asks for
// their states. To measure something else with a probe from now on, send a *mir.ControlRequest by
// Post.
func (c *Client) Value(ctx context.Context, probes ...*Probe) (*Reading, error) {
	all := &Reading{}
	for _, g := range byApp(probes) {
		r, err := c.value(ctx, g)
		if err != nil {
			return nil, err
		}
		all.Values, all.Document = append(all.Values, r.Values...), r.Document
		all.Notice = cmp.Or(all.Notice, r.Notice)
	}
	return all, nil
}

// value reads probes of one application. Another client may redefine a probe at any time, so value
// asks again if a definition has changed: a document can fit two definitions.
func (c *Client) value(ctx context.Context, probes []*Probe) (*Reading, error) {
	const attempts = 3
	for range attempts {
		document, err := answerOf[*mir.Measurement](c.Post(ctx, probes[0].App, control(mir.Value, probes)))
		if err != nil {
			return nil, err
		}
		if changed, err := renew(ctx, probes); err != nil || changed {
			if err != nil {
				return nil, err
			}
			continue
		}
		values, err := Decompress(definitions(probes), document)
		return &Reading{Values: values, Notice: document.Notice, Document: document}, err
	}
	return nil, fmt.Errorf("other clients redefine probe %s again and again", probes[0].ID)
}

// renew asks for the definitions of probes and reports whether one has changed.
func renew(ctx context.Context, probes []*Probe) (changed bool, err error) {
	for _, p := range probes {
		before := p.Last().Request
		now, err := p.Status(ctx)
		if err != nil {
			return false, err
		}
		changed = changed || now.Request != before
	}
	return changed, nil
}

func definitions(probes []*Probe) []Definition {
	list := make([]Definition, len(probes))
	for i, p := range probes {
		list[i] = Definition{p.ID, p.Definition()}
	}
	return list
}

// Definition is the last request that defined a probe.
type Definition struct {
	Probe   string
	Request *mir.InstrRequest
}

// Decompress returns the values in a measurement document of some probes, in the order of the
// document. The definitions tell what the positions in the document mean (MIR 6).
func Decompress(definitions []Definition, document *mir.Measurement) (values []Value, err error) {
	shapes := make([]mir.Values, len(definitions))
	byID := make(map[string]*mir.InstrRequest, len(definitions))
	for i, d := range definitions {
		byID[d.Probe] = d.Request
		shapes[i] = mir.Values{
			ProbeID: d.Probe, Metrics: len(d.Request.Metrics), Functions: len(d.Request.Measuring.Functions()), Entities: d.Request.Entities,
		}
	}
	read, err := mir.Decompress(shapes, document)
	if err != nil {
		return nil, fmt.Errorf("cannot read the measurement: %w", err)
	}
	for _, one := range read {
		for i := range one.Tuples {
			values = append(values, named(one.ProbeID, byID[one.ProbeID], &one.Tuples[i]))
		}
	}
	return values, nil
}

func named(probe string, r *mir.InstrRequest, t *mir.Tuple) Value {
	v := Value{
		Probe: probe, Site: t.SiteID, Node: t.NodeID, Communicator: t.CommunicatorID, Process: t.ProcessID, Thread: t.ThreadID,
		Metric: r.Metrics[t.Metric].Name, Text: t.Value, Sample: t.Sample,
	}
	if functions := r.Measuring.Functions(); len(functions) > 0 {
		v.Function = functions[t.Function]
	}
	if t.Spread != nil {
		v.Percentiles = t.Spread.Percentiles
	}
	return v
}
