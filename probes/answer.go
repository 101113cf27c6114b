package probes

import (
	"context"
	"errors"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
)

// Options of an answer.
type Options struct {
	// Explain answers with a *mir.Explain, which says what would be done, and
	// does nothing.
	Explain bool
}

// Answer carries out a snapshot, an instrumentation or a control request. The
// document is nil where MIR has no answer to a request that was done: one that
// sets defaults, or only flushes. AsErrors lists what is wrong.
//
// Each error has a place in the request, that of the root element where it is about nothing
// in particular, and they come in the order of the document.
func (a *App) Answer(ctx context.Context, doc mir.Document, o Options) (mir.Document, error) {
	answer, err := a.answer(ctx, doc, o)
	return answer, placed(err, mir.PositionOf(doc))
}

func (a *App) answer(ctx context.Context, doc mir.Document, o Options) (mir.Document, error) {
	if err := a.usable(); err != nil {
		return nil, err
	}
	switch d := doc.(type) {
	case *mir.SnapshotRequest:
		return a.snapshot(ctx, d, o)
	case *mir.InstrRequest:
		return a.instrument(ctx, d, o)
	case *mir.ControlRequest:
		return a.control(ctx, d, o)
	}
	return nil, failf(Invalid, "a %s is no request to an application: post a snapshotreq, an instrreq or a ctrlreq", doc.Root())
}

func (a *App) snapshot(ctx context.Context, d *mir.SnapshotRequest, o Options) (mir.Document, error) {
	s := translate.NewSnapshot(d, a.machine())
	if o.Explain {
		x := &mir.Explain{}
		once(x, s.Request)
		return x, nil
	}
	reply, err := a.request(ctx, s.Request)
	if err != nil {
		return nil, err
	}
	var failed error
	snap, err := s.Read(reply, a.resolver(ctx, &failed), a.goroutines(ctx))
	if err := errors.Join(err, failed); err != nil {
		return nil, collected(AsErrors(err))
	}
	return snap, nil
}

// resolver makes the symboliser of each process once for a snapshot. failed
// takes the first error: addresses without names are no answer to a request for
// a call stack.
func (a *App) resolver(ctx context.Context, failed *error) translate.Resolver {
	made := make(map[omis.Token]func(uint64, bool) string)
	return func(token omis.Token, pc uint64, first bool) string {
		resolve, ok := made[token]
		if !ok {
			p, _ := a.process(token)
			var err error
			if resolve, err = a.registry.config.Programs.Resolver(ctx, p.PID); err != nil && *failed == nil {
				*failed = failf(CannotBeDone, "cannot name the addresses of process %s: %v", token, err)
			}
			made[token] = resolve
		}
		if resolve == nil {
			return ""
		}
		return resolve(pc, first)
	}
}

// goroutines lists the goroutines of the application's processes.
func (a *App) goroutines(ctx context.Context) translate.Goroutines {
	return func(token omis.Token, depth int) ([]node.GoroutineInfo, error) {
		p, ok := a.process(token)
		if !ok || a.registry.config.Goroutines == nil {
			return nil, nil
		}
		list, err := a.registry.config.Goroutines(ctx, p.PID, depth)
		if err != nil {
			return nil, failf(CannotBeDone, "%v", err)
		}
		return list, nil
	}
}

// machine is the node that the application's processes run on.
func (a *App) machine() translate.Node {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return translate.Node{Token: a.node, Name: a.registry.config.Node}
}

// targets says what the application consists of now. Modules are asked for only
// where a region has to be found.
func (a *App) targets(ctx context.Context, region bool) (*translate.Targets, error) {
	snap, err := a.snapshot(ctx, &mir.SnapshotRequest{}, Options{})
	if err != nil {
		return nil, err
	}
	t := &translate.Targets{Node: a.machine()}
	for _, e := range processesOf(snap.(*mir.Snapshot).Entities) {
		p := translate.Process{Token: omis.Token(e.ID)}
		for _, th := range e.Children {
			p.Threads = append(p.Threads, translate.Thread{Token: omis.Token(th.ID), Master: th.Master})
		}
		if region {
			known, _ := a.process(p.Token)
			if p.Modules, err = a.registry.config.Programs.Modules(ctx, known.PID); err != nil {
				return nil, failf(CannotBeDone, "cannot read the structure of process %s: %v", p.Token, err)
			}
		}
		t.Processes = append(t.Processes, p)
	}
	if len(t.Processes) == 0 {
		return nil, failf(Conflict, "application %s has no process any more", a.name)
	}
	return t, nil
}

// processesOf are the processes of a snapshot, inside nodes or not.
func processesOf(es []mir.Entity) []mir.Entity {
	var found []mir.Entity
	for i := range es {
		if es[i].Kind == mir.Process {
			found = append(found, es[i])
		} else {
			found = append(found, processesOf(es[i].Children)...)
		}
	}
	return found
}

// addressed is a probe with the place in the request that names it.
type addressed struct {
	*Probe
	pos mir.Position
}

// blame gives errors the place of the probe, where they have none of their own.
func (p addressed) blame(err error) Errors {
	var es Errors
	for _, e := range AsErrors(err) {
		if e.Pos == (mir.Position{}) {
			e = translate.Errorf(e.Kind, p.pos, "%s", e.Msg)
		}
		es = append(es, e)
	}
	return es
}

// find returns the probes that a control request names, or all that is wrong
// with the names.
func (a *App) find(refs []mir.ProbeRef) ([]addressed, error) {
	var found []addressed
	var errs Errors
	named := make(map[*Probe]bool, len(refs))
	for _, ref := range refs {
		p, err := a.registry.Probe(ref.ID)
		switch {
		case err != nil:
			errs = append(errs, translate.Errorf(NotFound, ref.Pos, "no probe %s in application %s", ref.ID, a.name))
		case p.app != a:
			errs = append(errs, translate.Errorf(NotFound, ref.Pos, "probe %s belongs to application %s, not to %s", ref.ID, p.app.name, a.name))
		case !named[p]:
			named[p] = true
			found = append(found, addressed{p, ref.Pos})
		}
	}
	return found, collected(errs)
}
