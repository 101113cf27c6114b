package probes

import (
	"context"
	"errors"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/sir"
)

// Options of an answer.
type Options struct {
	// Explain asks for a *mir.Explain with what the request would do, without doing it.
	Explain bool
}

// Answer executes a snapshot, an instrumentation or a control request. The document is nil if
// MIR defines no answer: for a request that only sets defaults or flushes. AsErrors returns the
// single errors.
//
// Each error has a position in the request, at least that of the root element. The errors are in
// the order of the document.
func (a *App) Answer(ctx context.Context, doc mir.Document, o Options) (mir.Document, error) {
	answer, err := a.answer(ctx, doc, o)
	return answer, placed(err, mir.PositionOf(doc))
}

func (a *App) answer(ctx context.Context, doc mir.Document, o Options) (mir.Document, error) {
	if err := a.usable(); err != nil {
		return nil, err
	}
	a.pauses.lease.renew()
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
	reply, err := a.tool.request(ctx, s.Request)
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

// resolver returns a translate.Resolver that reads the symbols of each process once. failed gets
// the first error: addresses without names are no answer to a request for call stacks.
func (a *App) resolver(ctx context.Context, failed *error) translate.Resolver {
	made := make(map[omis.Token]func(uint64, bool) string)
	return func(token omis.Token, pc uint64, first bool) string {
		resolve, ok := made[token]
		if !ok {
			p, _ := a.processes.find(token)
			var err error
			if resolve, err = a.registry.config.Runtime.Resolver(ctx, p.PID); err != nil && *failed == nil {
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
		p, ok := a.processes.find(token)
		if !ok {
			return nil, nil
		}
		list, err := a.registry.config.Runtime.Goroutines(ctx, p.PID, depth)
		if err != nil {
			return nil, failf(CannotBeDone, "%v", err)
		}
		return list, nil
	}
}

// machine returns the node of the application's processes.
func (a *App) machine() translate.Node {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return translate.Node{Token: a.node, Name: a.registry.config.Node, Site: a.registry.config.Site}
}

// targets returns the present processes of the application. With inCode it includes their
// modules, in which regions and functions can be found: all of them, or those of a program.
func (a *App) targets(ctx context.Context, inCode bool, program string) (*translate.Targets, error) {
	t := &translate.Targets{Node: a.machine(), Lacks: a.registry.config.Lacks}
	lookUp(ctx, t)
	t.Branch = a.branches.finder(ctx)
	s := translate.NewSnapshot(&mir.SnapshotRequest{}, t.Node)
	reply, err := a.tool.request(ctx, s.Request)
	if err != nil {
		return nil, err
	}
	if t.Processes, err = s.Processes(reply); err != nil {
		return nil, err
	}
	if len(t.Processes) == 0 {
		return nil, failf(Conflict, "application %s has no process any more", a.name)
	}
	for i := range t.Processes {
		p := &t.Processes[i]
		if !inCode {
			break
		}
		if p.Modules, err = a.registry.config.Runtime.Modules(ctx, p.PID, program); err != nil {
			return nil, failf(CannotBeDone, "cannot read the structure of process %s: %v", p.Token, err)
		}
	}
	return t, nil
}

// lookUp sets the functions that find regions and lines in modules.
func lookUp(ctx context.Context, t *translate.Targets) {
	t.Inside = func(m *translate.Module, r *sir.Region) ([]sir.Region, error) {
		if m.Inside == nil {
			return nil, nil
		}
		return m.Inside(ctx, r)
	}
	t.Line = func(m *translate.Module, file string, line int) (*sir.Region, error) {
		if m.Line == nil {
			return nil, nil
		}
		return m.Line(ctx, file, line)
	}
	t.Inlined = func(m *translate.Module, name string) (*sir.Region, error) {
		if m.Inlined == nil {
			return nil, nil
		}
		return m.Inlined(ctx, name)
	}
	t.Whole = func(m *translate.Module, unit *sir.Region) (*sir.Region, error) {
		if m.Whole == nil {
			return unit, nil
		}
		return m.Whole(ctx, unit)
	}
	t.Copies = func(m *translate.Module, unit *sir.Region) (none sir.Copies) {
		if m.Copies == nil {
			return none
		}
		return m.Copies(ctx, unit)
	}
}

// addressed is a probe with the position in the request that names it.
type addressed struct {
	*Probe
	pos mir.Position
}

// blame adds the position of the probe to errors without a position.
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

// find returns the probes that a control request names, or the errors of all wrong names.
func (a *App) find(refs []mir.ProbeRef) ([]addressed, error) {
	var found []addressed
	var errs Errors
	named := make(map[*Probe]bool, len(refs))
	add := func(p *Probe, pos mir.Position) {
		if !named[p] {
			named[p] = true
			found = append(found, addressed{p, pos})
		}
	}
	for _, ref := range refs {
		if ref.ID == "" {
			list := labelled(a.Probes(), ref.Label)
			for _, p := range list {
				add(p, ref.Pos)
			}
			if len(list) == 0 {
				errs = append(errs, translate.Errorf(NotFound, ref.Pos, "no probe of application %s has the label %s", a.name, ref.Label))
			}
			continue
		}
		p, err := a.registry.Probe(ref.ID)
		switch {
		case err != nil:
			errs = append(errs, translate.Errorf(NotFound, ref.Pos, "no probe %s in application %s", ref.ID, a.name))
		case p.app != a:
			errs = append(errs, translate.Errorf(NotFound, ref.Pos, "probe %s belongs to application %s, not to %s", ref.ID, p.app.name, a.name))
		default:
			add(p, ref.Pos)
		}
	}
	return found, collected(errs)
}

// labelled returns those of the probes that have a label.
func labelled(all []*Probe, label string) []*Probe {
	return slices.DeleteFunc(all, func(p *Probe) bool {
		p.mu.RLock()
		defer p.mu.RUnlock()
		return p.request.Label != label
	})
}
