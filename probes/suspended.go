package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mirador/mir/translate"
	"mirador/omis"
)

// perProcess has conditional requests, one for each living process that needs one. The lock op of the application
// guards it.
type perProcess map[omis.Token]omis.Token

// adjust defines and deletes requests. The function returns the request for a process and what receives its
// replies; the request is "" if the process needs none. adjust returns the errors of processes that cannot be watched.
func (w *perProcess) adjust(ctx context.Context, a *App, of func(*Process) (string, func(omis.Reply))) (errs map[omis.Token]error) {
	if *w == nil {
		*w = make(perProcess)
	}
	errs = make(map[omis.Token]error)
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
			if err == nil {
				err = a.tool.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr))
			}
			if err != nil {
				errs[p.Token] = errors.Join(err, a.tool.do(ctx, translate.Delete(tokens(csr))))
				continue
			}
			(*w)[p.Token] = csr
		case request == "" && watched:
			delete(*w, p.Token)
			if err := a.tool.do(ctx, translate.Delete(tokens(defined))); err != nil {
				errs[p.Token] = err
			}
		}
	}
	return errs
}

// tokens returns a list of one token, which is empty for "".
func tokens(one omis.Token) []omis.Token {
	if one == "" {
		return nil
	}
	return []omis.Token{one}
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
