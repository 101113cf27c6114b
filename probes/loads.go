package probes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"mirador/omis"
)

// loads watches for libraries that the application's processes load, while woven probes lack their regions in a
// process. The process is suspended before the constructors of the library. The lock op of the application guards it.
type loads struct {
	app     *App
	watched perProcess
}

// watch watches the processes that need it.
func (l *loads) watch(ctx context.Context) error {
	return l.watched.adjust(ctx, l.app, func(p *Process) (string, func(omis.Reply)) {
		if !slices.ContainsFunc(l.app.Probes(), func(q *Probe) bool { return lacks(q, p.Token) }) {
			return "", nil
		}
		start, err := l.app.registry.config.Runtime.Start(p.PID)
		if err != nil || start.At == 0 || start.Late != "" {
			return "", nil // no dynamic linker tells what it loads
		}
		return fmt.Sprintf("thread_reached_addr([%s],%#x) : thread_suspend([%[1]s]) print([$proc])", p.Token, start.At), func(r omis.Reply) {
			if isTriggered(r) {
				go l.loaded(*p)
			}
		}
	})
}

// lacks reports whether a woven probe may find its region in what a process loads later.
func lacks(p *Probe, process omis.Token) bool {
	state, w := p.now()
	return p.woven && (state == Woven || w != nil && w.plan.Open() && !w.plan.Measures(process))
}

// loaded installs the woven probes whose regions are in a library that a process has just loaded.
func (l *loads) loaded(p Process) {
	a := l.app
	whileSuspended(a, p.Token, "a process uses a library before the woven probes are there, because the application is busy", func(ctx context.Context, log *slog.Logger) {
		if start, err := a.registry.config.Runtime.Start(p.PID); err != nil || start.Loading {
			return
		}
		a.weaving.appear(ctx, []omis.Token{p.Token})
		for _, q := range a.Probes() {
			_, w := q.now()
			if w == nil || !lacks(q, p.Token) {
				continue
			}
			if err := q.extend(ctx, w, []omis.Token{p.Token}); err != nil && !isAbsent(err) {
				log.Warn("cannot measure a woven region of a library", "probe", q.id, "error", err)
			}
		}
	})
}
