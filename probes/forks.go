package probes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"mirador/omis"
)

const (
	// mostForked is how many forked processes an application takes in. Each has places of
	// its own for every probe, which stay until the probe is removed.
	mostForked = 1000

	// forkPatience is how long a forked process waits at its beginning for the probes. The
	// application may be busy with another change.
	forkPatience = 2 * time.Second
)

// forks is what an application does with processes that its processes fork. The lock op of
// the application guards it.
type forks struct {
	followed bool
	taken    int                       // forked processes that were taken in
	requests map[omis.Token]omis.Token // what tells of forks, by the process that forks
}

// Follow makes the application take in what its processes fork, while it has probes that
// measure all of its processes. A forked process waits at its beginning until the probes
// are there, so that they miss none of its calls. To hear of forks the monitor traces the
// processes with ptrace; the rest of the time it does not.
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
	return a.watchForks(ctx)
}

// watchForks makes the monitor tell of the forks of every living process if a probe needs
// that, and of none otherwise. op is held.
func (a *App) watchForks(ctx context.Context) error {
	if !a.forks.followed {
		return nil
	}
	needed := a.forks.taken < mostForked && slices.ContainsFunc(a.Probes(), (*Probe).measuresAll)
	for _, p := range a.Processes() {
		request, watched := a.forks.requests[p.Token]
		switch {
		case p.Gone:
			delete(a.forks.requests, p.Token) // the monitor deleted the request with the process
		case needed && !watched:
			if err := a.watchForksOf(ctx, p.Token); err != nil {
				return err
			}
		case !needed && watched:
			delete(a.forks.requests, p.Token)
			if err := a.do(ctx, fmt.Sprintf(": csr_delete([%s])", request)); err != nil {
				return err
			}
		}
	}
	return nil
}

// measuresAll reports whether the probe stands in all processes of the application.
func (p *Probe) measuresAll() bool {
	state, w := p.now()
	return state != Removed && w != nil && w.plan.Open() && w.plan.OnRegion()
}

// watchForksOf makes the monitor tell of the forks of a process. The new process is
// suspended before its first instruction.
func (a *App) watchForksOf(ctx context.Context, process omis.Token) error {
	request := fmt.Sprintf("thread_creates_proc([%s]) : proc_attach([$new_proc]) thread_suspend([$new_proc]) print([$new_proc])", process)
	csr, err := a.define(ctx, request, a.forked, 0)
	if err != nil {
		return err
	}
	if a.forks.requests == nil {
		a.forks.requests = make(map[omis.Token]omis.Token)
	}
	a.forks.requests[process] = csr
	return a.do(ctx, fmt.Sprintf(": csr_enable([%s])", csr))
}

// forked takes the reply that tells of a new process. The monitor must not wait for what
// follows.
func (a *App) forked(r omis.Reply) {
	if len(r) < 4 || len(r[0]) == 0 || r[0][0].Status != omis.CSRTriggered {
		return
	}
	for _, result := range r[3] { // of print
		for _, v := range result.Values {
			for _, token := range v.List {
				go a.takeIn(token.Token())
			}
		}
	}
}

// takeIn puts the probes into a process that was forked, and lets it go on.
func (a *App) takeIn(process omis.Token) {
	ctx := context.Background()
	log := a.registry.config.Log.With("app", a.name, "process", process)
	resume := sync.OnceFunc(func() {
		if a.usable() != nil {
			return // the monitor resumed it when the application was released
		}
		if err := a.do(ctx, fmt.Sprintf(": thread_resume([%s])", process)); err != nil {
			log.Warn("cannot resume a forked process", "error", err)
		}
	})
	defer resume()
	defer time.AfterFunc(forkPatience, func() {
		log.Warn("a forked process goes on before the probes are there, because the application is busy; its first calls are not measured")
		resume()
	}).Stop()
	a.op.Lock()
	defer a.op.Unlock()
	if a.usable() != nil {
		return
	}
	if err := a.admit(ctx, process, false); err != nil {
		log.Warn("cannot take in a forked process", "error", err)
		return
	}
	if a.forks.taken++; a.forks.taken == mostForked {
		log.Warn("the application follows no more forks: it has taken in as many processes as it can", "processes", mostForked)
	}
	a.follow(ctx, process)
	if err := a.watchForks(ctx); err != nil {
		log.Warn("cannot follow the forks of a forked process", "error", err)
	}
	if err := a.writeSelf(); err != nil {
		log.Warn("cannot note a forked process", "error", err)
	}
}
