package probes

import (
	"context"
	"errors"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes/deliver"
)

type callerKey struct{}

// caller is who makes a request.
type caller struct {
	name string
	user deliver.User
}

// WithCaller returns a context for requests of a caller. Probes show the name. The files to which
// measurements are delivered are opened with the rights of the user.
func WithCaller(ctx context.Context, name string, u deliver.User) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{name, u})
}

// callerOf returns who makes a request. Without a caller, the gateway itself makes it.
func callerOf(ctx context.Context) caller {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		return c
	}
	return caller{"gateway", deliver.User{UID: -1, Trusted: true}}
}

// asUser returns a context for what the gateway does again for the user of the probe.
func asUser(ctx context.Context, p *Probe) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return WithCaller(ctx, p.owner, p.user)
}

func userOf(ctx context.Context) deliver.User { return callerOf(ctx).user }

// destination returns the destination of a request, "" for the gateway's stream alone.
func destination(m *mir.Measuring) string {
	if m == nil || m.Destination == nil {
		return ""
	}
	return *m.Destination
}

// checkDestination reports whether measurements can be delivered to the destination of a
// request. It creates a file that does not exist.
func (r *Registry) checkDestination(ctx context.Context, m *mir.Measuring) error {
	uri := destination(m)
	if uri == "" {
		return nil
	}
	refuse := func(err error) error {
		return collected(Errors{translate.Errorf(translate.CannotBeDone, m.Pos, "destination: %v", err)})
	}
	a, err := deliver.ParseAddress(uri)
	if err != nil {
		return refuse(err)
	}
	if err := r.queues.Try(a, userOf(ctx)); err != nil {
		return refuse(err)
	}
	return nil
}

// direct makes the probe deliver to the destination of its definition, besides its streams.
// A destination that cannot be opened now is reported by the probe's notice.
func (p *Probe) direct(w *installed) {
	uri := ""
	if pace(w.times) != 0 {
		uri = destination(w.times)
	}
	p.mu.Lock()
	old, user := p.destination, p.user
	p.mu.Unlock()
	if old != nil && old.uri == uri {
		return
	}
	if old != nil {
		p.outlet.Remove(old.queue)
	}
	var now *directed
	if uri != "" {
		a, err := deliver.ParseAddress(uri)
		var queue deliver.Destination
		if err == nil {
			queue, err = p.app.registry.queues.To(p.id, a, user)
		}
		if err == nil && !p.outlet.Add(queue) {
			err = errors.New("the probe has been removed")
			queue.Close()
		}
		if err != nil {
			p.complain(context.Background(), "cannot deliver", err)
			p.mu.Lock()
			p.notice = "measurements cannot be delivered: " + err.Error()
			p.mu.Unlock()
		} else {
			now = &directed{uri, queue}
		}
	}
	p.mu.Lock()
	p.destination = now
	p.mu.Unlock()
}

// directed is the destination of a probe outside the gateway.
type directed struct {
	uri   string
	queue deliver.Destination
}

// last delivers the final values of a probe that is about to be removed.
func (p *Probe) last(ctx context.Context) {
	state, w := p.now()
	if state != Active {
		return
	}
	p.drain(ctx, w)
	if pace(w.times) != 0 && !each(w) {
		p.send(ctx)
	}
}
