package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"mirador/mir"
	"mirador/omis"
)

// State is the state of a probe in its life cycle.
type State string

const (
	Defined  State = "defined" // waiting for a request that flushes
	Woven    State = "woven"   // its region is written into a source; no process has the code
	Inactive State = "inactive"
	Active   State = "active"
	Failed   State = "failed" // could not be installed when it was flushed
	Removed  State = "removed"
)

// Probe describes a probe. Its JSON form is what the gateway sends.
type Probe struct {
	ID         string           `json:"id"`
	App        string           `json:"app"`
	State      State            `json:"state"`
	Region     string           `json:"region,omitempty"` // as in the request
	Unit       string           `json:"-"`                // the name of the region, once it is installed
	Owner      string           `json:"owner,omitempty"`  // who requested it, such as uid 1000
	Label      string           `json:"label,omitempty"`
	Note       string           `json:"note,omitempty"`
	Metrics    []string         `json:"metrics"`
	Request    string           `json:"request"`              // the last definition, an instrreq with defaults filled in
	Requests   []string         `json:"requests,omitempty"`   // its conditional requests
	Placements []omis.Placement `json:"-"`                    // of Requests
	Expires    *time.Time       `json:"expires,omitempty"`    // when the lease ends, unless the probe is used; nil: never
	Deliveries []Delivery       `json:"deliveries,omitempty"` // to destinations outside the gateway
	Gone       bool             `json:"gone,omitempty"`       // all measured processes have terminated
	Failure    string           `json:"failure,omitempty"`    // why it could not be installed
	Notice     string           `json:"notice,omitempty"`     // what the gateway did without a request
	Cost       *mir.Cost        `json:"spent,omitempty"`      // nil: not known
}

// Dearest returns the most expensive placement, which determines the effect on the target. It
// is zero if nothing is installed.
func (p Probe) Dearest() omis.Placement {
	if len(p.Placements) == 0 {
		return omis.Placement{}
	}
	return slices.MaxFunc(p.Placements, func(a, b omis.Placement) int { return cmp.Compare(a.Cost, b.Cost) })
}

// MarshalJSON adds the dearest placement. It marks the cost as rough if that of any placement is.
func (p Probe) MarshalJSON() ([]byte, error) {
	type fields Probe
	at := p.Dearest()
	all := struct {
		fields
		dearest
	}{fields(p), dearest{Placement: at.Name, Why: at.Why, Cost: mir.Rounded(at.Cost, 3), Calibrated: at.Measured}}
	for _, at := range p.Placements {
		all.Rough = all.Rough || at.Rough()
		all.Bias = max(all.Bias, at.Bias)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the request is XML, for people to read
	err := encoder.Encode(all)
	return text.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON wrote. Of the placements only the dearest comes back.
func (p *Probe) UnmarshalJSON(text []byte) error {
	type fields Probe
	var at dearest
	if err := errors.Join(json.Unmarshal(text, (*fields)(p)), json.Unmarshal(text, &at)); err != nil {
		return err
	}
	if at.Placement != "" {
		p.Placements = []omis.Placement{{Name: at.Placement, Why: at.Why, Cost: at.Cost, Measured: at.Calibrated, Bias: at.Bias}}
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

// Delivery describes the delivery of a probe's documents to a destination.
type Delivery struct {
	Destination string `json:"destination"`
	Delivered   int64  `json:"delivered"`         // number of the newest document that left the queue
	Waiting     int    `json:"waiting,omitempty"` // documents in the queue
	Lost        int64  `json:"lost,omitempty"`
	Failure     string `json:"failure,omitempty"` // why documents wait
}
