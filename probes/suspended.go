package probes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mirador/omis"
)

// perProcess has conditional requests, one for each living process that needs one. The lock op of the application
// guards it.
type perProcess map[omis.Token]omis.Token

// adjust defines and deletes requests. The function returns the request for a process and what receives its
// replies; the request is "" if the process needs none.
func (w *perProcess) adjust(ctx context.Context, a *App, of func(*Process) (string, func(omis.Reply))) error {
	if *w == nil {
		*w = make(perProcess)
	}
	for _, p := range a.processes.list() {
		defined, watched := (*w)[p.Token]
		if p.Gone {
			delete(*w, p.Token) // the monitor deleted the request with the process
			continue
		}
		request, occurred := of(&p)
		switch {
		case request != "" && !watched:
			csr, err := a.tool.define(ctx, request, occurred, 0)
			if err != nil {
				return err
			}
			(*w)[p.Token] = csr
			if err := a.tool.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr)); err != nil {
				return err
			}
		case request == "" && watched:
			delete(*w, p.Token)
			if err := a.tool.do(ctx, fmt.Sprintf(": csr_delete([%s])", defined)); err != nil {
				return err
			}
		}
	}
	return nil
}

// whileSuspended runs a function, with op, for a process that an event has suspended, and resumes the process then, or
// when its patience ends; late says what the log has about that.
func whileSuspended(a *App, process omis.Token, late string, do func(context.Context, *slog.Logger)) {
	ctx := context.Background()
	log := a.registry.config.Log.With("app", a.name, "process", process)
	resume := sync.OnceFunc(func() {
		if a.usable() != nil {
			return // the release of the application has resumed it
		}
		if err := a.tool.do(ctx, fmt.Sprintf(": thread_resume([%s])", process)); err != nil {
			log.Warn("cannot resume a process", "error", err)
		}
	})
	defer resume()
	defer time.AfterFunc(suspendPatience, func() {
		log.Warn(late)
		resume()
	}).Stop()
	a.op.Lock()
	defer a.op.Unlock()
	if a.usable() == nil {
		do(ctx, log)
	}
}
