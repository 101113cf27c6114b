package probes

import (
	"context"
	"fmt"
	"time"

	"mirador/omis"
)

// Pause says that a program is started, but not continued.
type Pause struct {
	// Lease continues the program when no document was sent to its application for this
	// time; 0: never.
	Lease time.Duration
}

// pauses has the programs of an application that were started paused. The lock op of the
// application guards it.
type pauses struct {
	app      *App
	requests map[omis.Token]omis.Token // conditional requests that report that a process was continued
	lease    lease
}

// begin records that a process is paused; where describes the place.
func (w *pauses) begin(ctx context.Context, token omis.Token, where string, p Pause) error {
	continued := func(r omis.Reply) {
		if isTriggered(r) {
			w.app.processes.pause(token, "")
		}
	}
	csr, err := w.app.tool.define(ctx, fmt.Sprintf("proc_has_been_continued([%s]) : print([$proc])", token), continued, 0)
	if err != nil {
		return err
	}
	if w.requests == nil {
		w.requests = make(map[omis.Token]omis.Token)
	}
	w.requests[token] = csr
	w.app.processes.pause(token, where)
	w.lease.hold(p.Lease, w.expire)
	return w.app.tool.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr))
}

// end continues the paused programs.
func (w *pauses) end(ctx context.Context) error {
	w.lease.stop()
	if len(w.app.processes.paused()) == 0 {
		return nil
	}
	w.app.Heed(ctx)
	var errs Errors
	for _, token := range w.app.processes.paused() {
		if err := w.app.tool.do(ctx, fmt.Sprintf(": thread_continue([%s]) csr_delete([%s])", token, w.requests[token])); err != nil {
			errs = append(errs, AsErrors(err)...)
			continue
		}
		delete(w.requests, token)
		w.app.processes.pause(token, "")
	}
	return collected(errs)
}

// expire continues the paused programs if their application was not used.
func (w *pauses) expire() {
	ctx := context.Background()
	w.app.op.Lock()
	defer w.app.op.Unlock()
	term, ended := w.lease.over()
	waiting := w.app.processes.paused()
	if w.app.isReleased() || !ended || len(waiting) == 0 {
		return
	}
	log := w.app.registry.config.Log
	log.Warn("continued programs that were started paused: no document was sent to their application", "app", w.app.name, "processes", waiting, "lease", term)
	if err := w.end(ctx); err != nil {
		log.Warn("cannot continue a program that was started paused", "app", w.app.name, "error", err)
	}
}

// Continue continues the programs of the application that were started paused.
func (a *App) Continue(ctx context.Context) error {
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return err
	}
	if len(a.processes.paused()) == 0 {
		return failf(Conflict, "no process of application %s is paused: only a program that was started with \"mirador run --paused\" waits to be continued, once", a.name)
	}
	return a.pauses.end(ctx)
}

// describe adds when the lease of the paused programs ends.
func (w *pauses) describe(s *AppStatus) {
	if end := w.lease.end(); s.State == Paused && !end.IsZero() {
		s.Continues = &end
	}
}
