package probes

import (
	"context"
	"fmt"
	"time"

	"mirador/omis"
)

// startPatience bounds the time in which a program that is started paused loads its libraries.
const startPatience = time.Minute

// complete lets a created process run until its libraries are mapped, and stops it before it
// runs anything of its own. It returns a description of the place.
func (w *pauses) complete(ctx context.Context, token omis.Token) (where string, err error) {
	p, _ := w.app.processes.find(token)
	start, err := w.app.registry.config.Runtime.Start(p.PID)
	if err != nil {
		return "", failf(CannotBeDone, "cannot find out where process %d begins: %v", p.PID, err)
	}
	if start.At == 0 {
		return "before its first instruction", nil
	}
	reached := make(chan omis.Reply, 1)
	csr, err := w.app.tool.define(ctx, fmt.Sprintf("thread_reached_addr([%s],%#x) : thread_stop([%s]) print([$thread])", token, start.At, token),
		func(r omis.Reply) {
			if isTriggered(r) || r.Err() != nil {
				reached <- r // the process stays stopped until the reply was read
			}
		}, 0)
	if err != nil {
		return "", err
	}
	if err := w.app.tool.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr)); err != nil {
		return "", err
	}
	for loading := true; loading; {
		if err := w.runTo(ctx, token, reached); err != nil {
			return "", err
		}
		now, err := w.app.registry.config.Runtime.Start(p.PID)
		if err != nil {
			return "", failf(CannotBeDone, "cannot find out what process %d has loaded: %v", p.PID, err)
		}
		loading = now.Loading
	}
	where = "before its first constructor"
	if start.Late != "" {
		where = "before its own first instruction, after " + start.Late
	}
	return where, w.app.tool.do(ctx, fmt.Sprintf(": csr_delete([%s])", csr))
}

// runTo continues a created process until it stops at a place.
func (w *pauses) runTo(ctx context.Context, token omis.Token, reached <-chan omis.Reply) error {
	limit := time.NewTimer(startPatience)
	defer limit.Stop()
	ended := w.app.processes.nextEnd()
	if err := w.app.tool.do(ctx, fmt.Sprintf(": thread_continue([%s])", token)); err != nil {
		return err
	}
	for {
		select {
		case r := <-reached:
			return r.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return failf(CannotBeDone, "the program has not loaded its libraries within %v", startPatience)
		case <-ended:
		}
		if p, _ := w.app.processes.find(token); p.Gone {
			return failf(CannotBeDone, "the program ended before it had loaded its libraries; its dynamic linker has written why to its standard error")
		}
		ended = w.app.processes.nextEnd()
	}
}
