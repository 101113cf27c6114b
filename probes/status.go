package probes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"mirador/mir"
	"mirador/omis"
	"mirador/probes/deliver"
)

// Status describes a probe. Its JSON form is what the gateway sends.
type Status struct {
	ID         string           `json:"id"`
	App        string           `json:"app"`
	State      State            `json:"state"`
	Region     string           `json:"region,omitempty"` // as in the request
	Unit       string           `json:"-"`                // the name of the region, once it is installed
	Label      string           `json:"label,omitempty"`
	Metrics    []string         `json:"metrics"`
	Request    string           `json:"request"`              // the last definition, an instrreq with defaults filled in
	Requests   []string         `json:"requests,omitempty"`   // its conditional requests
	Placements []omis.Placement `json:"-"`                    // of Requests
	Expires    *time.Time       `json:"expires,omitempty"`    // when the lease ends, unless the probe is used; nil: never
	Deliveries []deliver.State  `json:"deliveries,omitempty"` // to destinations outside the gateway
	Gone       bool             `json:"gone,omitempty"`       // all measured processes have terminated
	Failure    string           `json:"failure,omitempty"`    // why it could not be installed
	Notice     string           `json:"notice,omitempty"`     // what the gateway did without a request
	Cost       *mir.Cost        `json:"spent,omitempty"`      // nil: not known
}

// Dearest returns the most expensive placement, which determines the effect on the target. It
// is zero if nothing is installed.
func (s Status) Dearest() omis.Placement {
	if len(s.Placements) == 0 {
		return omis.Placement{}
	}
	return slices.MaxFunc(s.Placements, func(p, q omis.Placement) int { return cmp.Compare(p.Cost, q.Cost) })
}

// MarshalJSON adds the dearest placement. It marks the cost as rough if that of any placement is.
func (s Status) MarshalJSON() ([]byte, error) {
	type fields Status
	p := s.Dearest()
	all := struct {
		fields
		dearest
	}{fields(s), dearest{Placement: p.Name, Why: p.Why, Cost: mir.Rounded(p.Cost, 3), Calibrated: p.Measured}}
	for _, p := range s.Placements {
		all.Rough = all.Rough || p.Rough()
		all.Bias = max(all.Bias, p.Bias)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the request is XML, for people to read
	err := encoder.Encode(all)
	return text.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON wrote. Of the placements only the dearest comes back.
func (s *Status) UnmarshalJSON(text []byte) error {
	type fields Status
	var p dearest
	if err := errors.Join(json.Unmarshal(text, (*fields)(s)), json.Unmarshal(text, &p)); err != nil {
		return err
	}
	if p.Placement != "" {
		s.Placements = []omis.Placement{{Name: p.Placement, Why: p.Why, Cost: p.Cost, Measured: p.Calibrated, Bias: p.Bias}}
	}
	return nil
}

// dearest is the JSON form of the placements of a probe: the dearest, and the greatest bias.
type dearest struct {
	Placement  string  `json:"placement,omitempty"`
	Why        string  `json:"why,omitempty"`
	Cost       float64 `json:"cost,omitempty"` // predicted nanoseconds for each hit
	Calibrated bool    `json:"calibrated,omitempty"`
	Rough      bool    `json:"rough,omitempty"`
	Bias       int64   `json:"bias,omitempty"`
}

// Status returns the state of the probe.
func (p *Probe) Status() Status {
	p.mu.RLock()
	s := Status{ID: p.id, App: p.app.name, State: p.state}
	w, request := p.work, p.request
	s.Notice = p.notice
	if p.failure != nil {
		s.Failure = p.failure.Error()
	}
	p.mu.RUnlock()
	if text, err := mir.Marshal(&request); err == nil {
		s.Request = strings.TrimSpace(string(text))
	}
	s.Label = request.Label
	for _, m := range request.Metrics {
		s.Metrics = append(s.Metrics, m.Name)
	}
	if request.Region != nil {
		s.Region = cmp.Or(request.Region.From, request.Region.To)
	}
	if end := p.lease.end(); !end.IsZero() {
		s.Expires = &end
	}
	s.Deliveries = p.app.registry.queues.States(p.id)
	if w == nil {
		return s
	}
	s.Unit = w.plan.Region
	s.Requests = w.plan.Conditional(w.handles)
	s.Gone = w.plan.Outlived(p.app.processes.gone())
	s.Cost = p.cost(w, request.Budget)
	p.placeAgain(w)
	if all := w.placements.Load(); all != nil {
		s.Placements = *all
	}
	return s
}

// document returns the probe document: the id and, in an answer with extensions of the gateway,
// also the placements and the cost.
func (p *Probe) document(extended bool) *mir.Probe {
	if !extended {
		return &mir.Probe{ID: p.id}
	}
	s := p.Status()
	d := &mir.Probe{ID: p.id, Placements: s.Placements, Notice: s.Notice}
	if s.Cost != nil && (s.Cost.Hits > 0 || s.Cost.Budget > 0) {
		d.Cost = s.Cost
	}
	return d
}

// Hits returns the number of executions of the probe's region, as far as its metrics record it;
// 0 without a region.
func (p *Probe) Hits(ctx context.Context) (int64, error) {
	w, vs, err := p.measure(ctx)
	if err != nil || !w.plan.OnRegion() {
		return 0, err
	}
	return w.plan.Executions(vs), nil
}
