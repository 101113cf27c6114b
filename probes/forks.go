package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"mirador/omis"
)

const (
	// mostForked bounds the forked processes of an application. For each of them every probe
	// has places of its own, which remain until the probe is removed.
	mostForked = 1000

	// suspendPatience is how long a process is suspended for the probes, if the application is busy with another
	// change.
	suspendPatience = 2 * time.Second
)

// forks is the state of following forks. The lock op of the application guards it.
type forks struct {
	app      *App
	followed bool
	taken    int // forked processes that joined
	watched  perProcess
}

// Follow adds processes that the application's processes fork, while it has probes that measure
// all processes. A forked process waits before its first instruction until the probes are
// installed, so that they miss no call. To detect forks the monitor traces the processes with
// ptrace, but only as long as such probes exist.
func (a *App) Follow(ctx context.Context) error {
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return err
	}
	a.forks.followed = true
	if err := a.writeSelf(); err != nil {
		return err
	}
	return a.forks.watch(ctx)
}

// watch watches the forks of every living process if a probe needs them, otherwise of none. The
// caller holds op.
func (f *forks) watch(ctx context.Context) error {
	if !f.followed {
		return nil
	}
	needed := f.taken < mostForked && slices.ContainsFunc(f.app.Probes(), (*Probe).measuresAll)
	errs := f.watched.adjust(ctx, f.app, func(p *Process) (string, func(omis.Reply)) {
		if !needed {
			return "", nil
		}
		return fmt.Sprintf("thread_creates_proc([%s]) : proc_attach([$new_proc]) thread_suspend([$new_proc]) print([$new_proc])", p.Token), f.occurred
	})
	return errors.Join(slices.Collect(maps.Values(errs))...)
}

// measuresAll reports whether the probe measures its region in all processes of the application.
func (p *Probe) measuresAll() bool {
	state, w := p.now()
	return state != Removed && w != nil && w.plan.Open() && w.plan.OnRegion()
}

// occurred receives the reply about a new process. It starts a goroutine, because the monitor
// waits for it.
func (f *forks) occurred(r omis.Reply) {
	if len(r) < 4 || len(r[0]) == 0 || r[0][0].Status != omis.CSRTriggered {
		return
	}
	for _, result := range r[3] { // of print
		for _, v := range result.Values {
			for _, token := range v.List {
				go f.takeIn(token.Token())
			}
		}
	}
}

// takeIn adds a forked process, installs the probes in it and resumes it.
func (f *forks) takeIn(process omis.Token) {
	whileSuspended(f.app, process, "a forked process goes on before the probes are there, because the application is busy; its first calls are not measured",
		func(ctx context.Context, log *slog.Logger) { f.add(ctx, process, log) })
}

// add adds a forked process. The caller holds op.
func (f *forks) add(ctx context.Context, process omis.Token, log *slog.Logger) {
	a := f.app
	if err := a.admit(ctx, process, false); err != nil {
		log.Warn("cannot add a forked process", "error", err)
		return
	}
	if f.taken++; f.taken == mostForked {
		log.Warn("the application follows no more forks: it has added as many forked processes as it can", "processes", mostForked)
	}
	a.follow(ctx, process)
	if err := f.watch(ctx); err != nil {
		log.Warn("cannot follow the forks of a forked process", "error", err)
	}
	if err := a.writeSelf(); err != nil {
		log.Warn("cannot write a forked process to the journal", "error", err)
	}
}
