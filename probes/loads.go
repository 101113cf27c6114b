package probes

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"mirador/mir/translate"
	"mirador/omis"
)

// loads watches for libraries that the application's processes open and close, while woven probes lack their regions in
// a process, or probes have regions in libraries that the process can close. The process is suspended where the dynamic
// linker has mapped or unmapped libraries, before their constructors. The lock op of the application guards it.
type loads struct {
	app     *App
	watched perProcess
	opened  map[omis.Token][]translate.Library // what the watched processes had opened when they were looked at last
	late    map[omis.Token]bool                // processes that may have gone on before they were looked at
	unseen  map[omis.Token]string              // why processes cannot be watched that can close the library of a probe
}

// watch watches the processes that need it.
func (l *loads) watch(ctx context.Context) error {
	unseen := make(map[omis.Token]string)
	errs := l.watched.adjust(ctx, l.app, func(p *Process) (string, func(omis.Reply)) {
		probes := l.app.Probes()
		closable := l.canClose(p, probes)
		if !closable && !slices.ContainsFunc(probes, func(q *Probe) bool { return lacks(q, p.Token) }) {
			delete(l.opened, p.Token)
			return "", nil
		}
		start, err := l.app.registry.config.Runtime.Start(p.PID)
		if err != nil || start.At == 0 || start.Late != "" {
			unseen[p.Token] = "its dynamic linker does not report what it unmaps"
			return "", nil
		}
		return fmt.Sprintf("thread_reached_addr([%s],%#x) : thread_suspend([%[1]s]) print([$proc])", p.Token, start.At), func(r omis.Reply) {
			if isTriggered(r) {
				go l.loaded(*p)
			}
		}
	})
	var failed error
	for process, err := range errs {
		unseen[process], failed = err.Error(), err
	}
	for process := range l.unseen {
		l.tell(process, func(translate.Library) string { return "" })
	}
	l.unseen = unseen
	for process, why := range unseen {
		l.tell(process, func(in translate.Library) string {
			return fmt.Sprintf("if %s closes %s, and opens it again, executions after that are missing, because it is not noticed: %s", process, in.Name(), why)
		})
	}
	if slices.ContainsFunc(l.app.Probes(), func(p *Probe) bool { return p.woven }) {
		return failed
	}
	return nil // the probes say it
}

// canClose reports whether the process can close a library in which a probe has its region, or has closed it.
func (l *loads) canClose(p *Process, probes []*Probe) bool {
	onRegion := func(q *Probe) bool {
		_, w := q.now()
		return w != nil && w.plan.OnRegion()
	}
	if !slices.ContainsFunc(probes, onRegion) {
		return false
	}
	libraries, err := l.app.registry.config.Runtime.Opened(p.PID)
	if err != nil {
		return l.watched[p.Token] != ""
	}
	found := slices.ContainsFunc(probes, func(q *Probe) bool {
		_, w := q.now()
		if w == nil {
			return false
		}
		_, in := w.inLibrary(p.Token, libraries)
		return in || (translate.Libraries{Plan: w.plan}).Away(p.Token)
	})
	if found && l.watched[p.Token] == "" {
		l.remember(p.Token, libraries)
	}
	return found
}

func (l *loads) remember(process omis.Token, libraries []translate.Library) {
	if l.opened == nil {
		l.opened = make(map[omis.Token][]translate.Library)
	}
	l.opened[process] = libraries
}

// tell gives notices to the probes in libraries that a process can close.
func (l *loads) tell(process omis.Token, what func(translate.Library) string) {
	for _, p := range l.app.Probes() {
		if _, w := p.now(); w != nil {
			if in, ok := w.inLibrary(process, l.opened[process]); ok {
				p.libraries.set(process, what(in))
			}
		}
	}
}

// lacks reports whether a woven probe may find its region in what a process loads later.
func lacks(p *Probe, process omis.Token) bool {
	if !p.woven {
		return false
	}
	state, w := p.now()
	return state == Woven || w != nil && w.plan.Open() && !w.plan.Measures(process)
}

// loaded looks at what a process has just opened or closed.
func (l *loads) loaded(p Process) {
	a, begin := l.app, time.Now()
	whileSuspended(a, p.Token, "a process uses a library before its probes are there, because the application is busy", func(ctx context.Context, log *slog.Logger) {
		if time.Since(begin) > suspendPatience {
			l.markLate(p.Token)
		}
		if start, err := a.registry.config.Runtime.Start(p.PID); err != nil || start.Loading {
			return
		}
		l.compare(ctx, log, p)
		a.weaving.appear(ctx, []omis.Token{p.Token})
		for _, q := range a.Probes() {
			_, w := q.now()
			if w == nil || !lacks(q, p.Token) || (translate.Libraries{Plan: w.plan}).Away(p.Token) {
				continue
			}
			if err := q.extend(ctx, w, []omis.Token{p.Token}); err != nil && !isAbsent(err) {
				log.Warn("cannot measure a woven region of a library", "probe", q.id, "error", err)
			}
		}
	})
}

func (l *loads) markLate(process omis.Token) {
	if l.late == nil {
		l.late = make(map[omis.Token]bool)
	}
	l.late[process] = true
}

// compare takes probes out of libraries that a process has closed since it was looked at last, and puts them into those
// that it has opened. If the process went on meanwhile, it may have closed and opened any library at the same address.
func (l *loads) compare(ctx context.Context, log *slog.Logger, p Process) {
	now, err := l.app.registry.config.Runtime.Opened(p.PID)
	if err != nil {
		log.Warn("cannot tell which libraries a process has opened", "error", err)
		return
	}
	late := l.late[p.Token]
	delete(l.late, p.Token)
	closed := slices.DeleteFunc(slices.Clone(l.opened[p.Token]), func(in translate.Library) bool { return !late && slices.Contains(now, in) })
	l.remember(p.Token, now)
	for _, q := range l.app.Probes() {
		_, w := q.now()
		if w == nil {
			continue
		}
		if err := l.leave(ctx, q, w, p.Token, closed); err != nil {
			log.Warn("cannot end the measuring in a library that was closed", "probe", q.id, "error", err)
		}
		if _, w = q.now(); !(translate.Libraries{Plan: w.plan}).Away(p.Token) {
			continue
		}
		if late {
			until := time.Now()
			w.gap.Store(&gap{until, fmt.Sprintf("executions in a library that %s opened may be missing until %s, because the gateway was busy then", p.Token, until.Format(time.RFC3339))})
		}
		if err := l.comeBack(ctx, q, w, p.Token); err != nil && !isAbsent(err) {
			log.Warn("cannot measure in a library that was opened again", "probe", q.id, "error", err)
		}
	}
}

// cameBack makes restored probes say that a library may have been opened again while no gateway was there. Processes
// that have closed it are measured when they open it again, as a woven probe measures any process that opens its library.
func (l *loads) cameBack(ctx context.Context) error {
	until := time.Now()
	for _, p := range l.app.Probes() {
		_, w := p.now()
		if w == nil {
			continue
		}
		for _, process := range slices.Sorted(maps.Keys(l.opened)) {
			in, ok := w.inLibrary(process, l.opened[process])
			if !ok {
				continue
			}
			w.gap.Store(&gap{until, fmt.Sprintf("executions may be missing that were before %s, while no gateway was there: %s may have closed %s and opened it again meanwhile", until.Format(time.RFC3339), process, in.Name())})
			if lacking := slices.DeleteFunc(l.app.processes.living(), w.plan.Measures); !p.woven && w.plan.Open() && len(lacking) > 0 {
				alter(p, w, (translate.Libraries{Plan: w.plan}).Without(lacking), w.handles, w.at)
			}
			break
		}
	}
	return l.watch(ctx)
}
