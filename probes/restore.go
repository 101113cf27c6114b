package probes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mirador/mir"
	"mirador/omis"
)

// Restore restores what a killed gateway left: its applications, as far as their processes live,
// and their probes, with what they have measured in the meantime. A probe that cannot be
// restored becomes a failed probe that contains the reason. Restore removes what the journal
// does not name. It must be called once, before anything else.
func (r *Registry) Restore(ctx context.Context) error {
	j := r.config.Journal
	if j == nil {
		return nil
	}
	r.restoring.Store(true)
	defer r.restoring.Store(false)
	if d := j.Damage(); len(d.Lines) > 0 {
		r.config.Log.Error("the journal was damaged: what these records said is lost, or is older", "records", d.Keys(), "lines", len(d.Lines), "copy", d.Copy)
	}
	r.recollect(issuedKey, &r.issued)
	r.keys.restore()
	left := r.leftProbes()
	for _, key := range j.Keys(appPrefix) {
		name := strings.TrimPrefix(key, appPrefix)
		if err := r.restoreApp(ctx, name, left[name]); err != nil {
			return fmt.Errorf("cannot restore the application %s: %w", name, err)
		}
	}
	r.settle()
	for _, resume := range r.delayed {
		resume()
	}
	r.delayed = nil
	return r.sweepSamples()
}

// recollect reads a value of the journal. It deletes a value that it cannot read, such as one of
// a gateway of another version, because that value must not prevent the start of this gateway.
func (r *Registry) recollect(key string, value any) (ok bool) {
	j := r.config.Journal
	ok, err := j.Get(key, value)
	if err == nil {
		return ok
	}
	r.config.Log.Warn("forgot what a former gateway has written", "error", errors.Join(err, j.Delete(key)))
	return false
}

// settle removes what a former gateway left in the monitor and no application has adopted.
func (r *Registry) settle() {
	orphans, err := r.config.Monitor.Settle()
	for _, o := range orphans {
		r.config.Log.Warn("took away what a former gateway has left", "pid", o.Proc.PID, "what", o.What)
	}
	if err != nil {
		r.config.Log.Warn("cannot take away all that a former gateway has left", "error", err)
	}
}

// leftProbes reads the probes of the journal, by application, in the order of their numbers.
func (r *Registry) leftProbes() map[string][]probeRecord {
	left := make(map[string][]probeRecord)
	byNumber := make(map[int]probeRecord)
	for _, key := range r.config.Journal.Keys(probePrefix) {
		var p probeRecord
		if r.recollect(key, &p) {
			byNumber[p.Number] = p
			r.issued = max(r.issued, p.Number)
		}
	}
	for number := range r.issued + 1 {
		if p, ok := byNumber[number]; ok {
			left[p.App] = append(left[p.App], p)
		}
	}
	return left
}

// restoreApp restores an application. It fails only if the monitor fails; processes that have
// ended in the meantime are no error.
func (r *Registry) restoreApp(ctx context.Context, name string, left []probeRecord) error {
	var rec appRecord
	if !r.recollect(appPrefix+name, &rec) {
		return nil
	}
	a := newApp(name, r)
	r.mu.Lock()
	r.apps[name] = a
	r.mu.Unlock()
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.connect(); err != nil {
		return err
	}
	if rec.Defaults != "" {
		request, err := readInstr(rec.Defaults)
		if err != nil {
			r.config.Log.Warn("forgot the defaults of an application", "app", name, "error", err)
		}
		a.defaults = request.Measuring
	}
	a.weaving.id, a.weaving.owner = rec.Weaving, rec.Owner
	a.branches.name(rec.Sources)
	why := a.readmit(ctx, rec.Processes)
	for _, p := range left {
		a.restoreProbe(ctx, p, why)
	}
	a.forks.followed = rec.Follow
	if err := a.forks.watch(ctx); err != nil {
		r.config.Log.Warn("cannot follow the forks of an application", "app", name, "error", err)
	}
	if err := a.loads.watch(ctx); err != nil {
		r.config.Log.Warn("cannot watch for libraries with woven regions", "app", name, "error", err)
	}
	if err := a.loads.cameBack(ctx); err != nil {
		r.config.Log.Warn("cannot watch for libraries that are opened again", "app", name, "error", err)
	}
	return a.writeDown()
}

// readmit attaches to the processes that still live. If none does, why is the reason for the
// last one.
func (a *App) readmit(ctx context.Context, left []Process) (why error) {
	log := a.registry.config.Log
	for _, p := range left {
		p.Paused = "" // the kernel has continued it
		if err := a.reattach(ctx, p); err != nil {
			why = err
			log.Warn("a process of a former gateway does not come back", "app", a.name, "process", p.Token, "pid", p.PID, "error", err)
			p.Gone = true
			a.processes.add(p)
		}
	}
	if a.State() == Running {
		return nil
	}
	return why
}

// reattach adds a process to the application again, under its former token.
func (a *App) reattach(ctx context.Context, p Process) error {
	monitor := a.registry.config.Monitor
	id := omis.ProcID{PID: p.PID, Start: p.Start}
	monitor.RecallProcess(id, p.Token)
	if now, err := monitor.Identify(p.PID); err != nil || now != id {
		return failf(NotFound, "process %d has ended while no gateway was there", p.PID)
	}
	node, err := a.attachNode(ctx)
	if err != nil {
		return err
	}
	token, err := a.tool.create(ctx, "proc_attach3", omis.Tokens(node), omis.Int(int64(p.PID)), omis.String(""))
	if err != nil {
		return err
	}
	if err := a.admit(ctx, token, p.Started); err != nil {
		a.expel(ctx, token)
		return err
	}
	return nil
}

// restoreProbe restores a probe, or adds it as a failed one if that is impossible. lost is the
// reason why no probe of the application can be restored, nil if they can.
func (a *App) restoreProbe(ctx context.Context, rec probeRecord, lost error) {
	request, err := readInstr(rec.Request)
	p := &Probe{
		id: probeID(rec.Number), number: rec.Number, app: a, request: request, user: rec.User, owner: rec.Owner, keyed: rec.Keyed,
		state: Defined, armed: rec.Armed, made: max(rec.Made-1, 0), woven: rec.Woven,
	}
	if p.keyed != nil && p.keyed.Probe == "" {
		p.keyed.Probe = p.id
		if err := a.registry.keys.enter(p.keyed); err != nil {
			a.registry.config.Log.Warn("cannot record the key of a request", "probe", p.id, "error", err)
		}
	}
	p.hold(request.Lease)
	p.touch()
	a.registry.mu.Lock()
	a.registry.probes[p.id] = p
	a.registry.mu.Unlock()
	a.mu.Lock()
	a.probes = append(a.probes, p)
	a.mu.Unlock()
	switch {
	case err != nil:
	case rec.State == Failed:
		p.fail(failf(Conflict, "%s", rec.Failure))
		return
	case rec.Woven && (rec.State == Woven || lost != nil):
		p.armed = rec.Armed || rec.State == Active
		p.change(Woven)
		return
	case lost != nil:
		err = lost
	case rec.State == Defined:
		p.made = rec.Made
		a.waiting = append(a.waiting, p)
		return
	default:
		p.armed = rec.State == Active
		plan, refused := a.weaving.planRestored(ctx, p)
		if err = a.settle(ctx, p, plan, refused); err == nil {
			since := p.recallSamples()
			if p.armed {
				defer p.missed(since)
			}
			if p.isRecorded() {
				p.seed(ctx)
				a.registry.delayed = append(a.registry.delayed, func() { p.resume(ctx) })
				break
			}
			for _, failed := range a.start(ctx, []*Probe{p}) {
				err = failed
			}
		}
	}
	if err == nil {
		if why := p.noteLoss(); why != "" {
			a.registry.config.Log.Warn("a probe of a former gateway has lost what it had measured", "probe", p.id, "app", a.name, "why", why)
			return
		}
		a.registry.config.Log.Info("a probe of a former gateway goes on", "probe", p.id, "app", a.name)
		return
	}
	p.fail(err)
	a.registry.config.Log.Warn("a probe of a former gateway does not come back", "probe", p.id, "app", a.name, "error", err)
}

// noteLoss records at a restored probe that values it had measured are lost, because
// the monitor executed its requests and had the values in the memory of the gateway
// that was killed. It returns the notice, "" if nothing is lost.
func (p *Probe) noteLoss() string {
	_, w := p.now()
	if w == nil || w.lost.IsZero() {
		return ""
	}
	notice := fmt.Sprintf("lost: what was measured before %s, or a part of it; the former gateway had it in its memory and was killed", w.lost.Format(time.RFC3339))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice = notice
	return notice
}

// readInstr reads an instrumentation request that write.go has written.
func readInstr(text string) (mir.InstrRequest, error) {
	doc, err := mir.Decoder{Limits: mir.ReplyLimits()}.DecodeRequest([]byte(text))
	if err != nil {
		return mir.InstrRequest{}, fmt.Errorf("the journal has a request that cannot be read: %w", err)
	}
	request, ok := doc.(*mir.InstrRequest)
	if !ok {
		return mir.InstrRequest{}, fmt.Errorf("the journal has a %s in place of an instrreq", doc.Root())
	}
	return *request, nil
}
