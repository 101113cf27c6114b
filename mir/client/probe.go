package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"mirador/mir"
)

// Probe is a probe of the gateway. It may be used by several goroutines. The probe lives in the
// gateway: it measures until it is removed, its lease ends, or its application is released.
type Probe struct {
	ID  string
	App string

	client *Client
	mu     sync.Mutex
	last   Status            // guarded by mu
	means  *mir.InstrRequest // the request of last; guarded by mu
}

// Instrument sends an instrumentation request and returns the probe that it creates. The probe
// measures at once if the request has Activated and Flush. app may be "" if there is only one.
// To set defaults, which creates no probe, use Post.
func (c *Client) Instrument(ctx context.Context, app string, r *mir.InstrRequest) (*Probe, error) {
	made, err := answerOf[*mir.Probe](c.Post(ctx, app, r))
	if err != nil {
		return nil, err
	}
	return c.Probe(ctx, made.ID)
}

// Probe returns the probe with an id.
func (c *Client) Probe(ctx context.Context, id string) (*Probe, error) {
	p := &Probe{ID: id, client: c}
	s, err := p.Status(ctx)
	p.App = s.App
	return p, err
}

// Status asks for the state of the probe: where it runs, what it costs, why it failed.
func (p *Probe) Status(ctx context.Context) (s Status, err error) {
	if err := p.client.JSON(ctx, Request{Method: http.MethodGet, Path: p.path()}, &s); err != nil {
		return s, err
	}
	decoded, err := mir.Decode([]byte(s.Request), mir.ReplyLimits())
	if err != nil {
		return s, fmt.Errorf("cannot read the request of probe %s: %w", p.ID, err)
	}
	r, ok := decoded.(*mir.InstrRequest)
	if !ok {
		return s, fmt.Errorf("probe %s was defined by a %s", p.ID, decoded.Root())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.means = s, r
	return s, nil
}

// Last returns the state that Status has read last.
func (p *Probe) Last() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Definition returns the last request that defined the probe, with the gateway's defaults filled
// in, as far as this client knows. It must not be changed.
func (p *Probe) Definition() *mir.InstrRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.means
}

func (p *Probe) path() string { return "/probes/" + url.PathEscape(p.ID) }

// Activate makes the probe measure.
func (p *Probe) Activate(ctx context.Context) error { return p.client.Control(ctx, mir.Activate, p) }

// Deactivate interrupts the measurement; the values stay.
func (p *Probe) Deactivate(ctx context.Context) error {
	return p.client.Control(ctx, mir.Deactivate, p)
}

// Reset begins the measurement anew.
func (p *Probe) Reset(ctx context.Context) error { return p.client.Control(ctx, mir.Reset, p) }

// Remove removes the probe. Every byte of the program is what it was before.
func (p *Probe) Remove(ctx context.Context) error { return p.client.Control(ctx, mir.Remove, p) }

// Control does the same with several probes, by one request for each application. It returns the
// first error; the action is not mir.Value.
func (c *Client) Control(ctx context.Context, action mir.Action, probes ...*Probe) error {
	for _, g := range byApp(probes) {
		if _, err := c.Post(ctx, g[0].App, control(action, g)); err != nil {
			return err
		}
	}
	return nil
}

// byApp groups probes by their applications, in the order of the first probe of each.
func byApp(probes []*Probe) (groups [][]*Probe) {
	index := make(map[string]int)
	for _, p := range probes {
		i, ok := index[p.App]
		if !ok {
			i = len(groups)
			index[p.App] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

func control(action mir.Action, probes []*Probe) *mir.ControlRequest {
	r := &mir.ControlRequest{Action: action}
	for _, p := range probes {
		r.Probes = append(r.Probes, mir.ProbeRef{ID: p.ID})
	}
	return r
}
