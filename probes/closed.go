package probes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mirador/mir/translate"
	"mirador/omis"
)

// This file is about regions in libraries that a program opens and closes. The code of a probe ends with the mapping of
// the library, so the probe leaves the process then, and comes back when the library is opened again.

// gap is a time in which executions may not have been measured.
type gap struct {
	until time.Time
	what  string
}

// libraryNotices have what is to be known of the region's library, by process. Their methods may be called from any
// goroutine.
type libraryNotices struct {
	mu sync.Mutex
	of map[omis.Token]string
}

// set records a notice, "" for none.
func (n *libraryNotices) set(process omis.Token, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, process)
	if what == "" {
		return
	}
	if n.of == nil {
		n.of = make(map[omis.Token]string)
	}
	n.of[process] = what
}

func (n *libraryNotices) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, process := range slices.Sorted(maps.Keys(n.of)) {
		all = append(all, n.of[process])
	}
	return strings.Join(slices.Compact(all), "; ")
}

// inLibrary returns the library that contains a place of the probe in a process.
func (w *installed) inLibrary(process omis.Token, libraries []translate.Library) (in translate.Library, ok bool) {
	if len(libraries) == 0 {
		return in, false
	}
	for _, place := range w.plan.Places {
		if i := holding(libraries, place.Addr); i >= 0 && slices.Contains(place.Processes, process) {
			return libraries[i], true
		}
	}
	return in, false
}

// holding returns the index of the library that contains an address, -1 if none does.
func holding(libraries []translate.Library, addr uint64) int {
	return slices.IndexFunc(libraries, func(l translate.Library) bool { return addr >= l.Begin && addr < l.End })
}

// leave ends the measuring in libraries that a process has closed. Where other processes have the same addresses, they
// are suspended while they get a request of their own.
func (l *loads) leave(ctx context.Context, p *Probe, w *installed, process omis.Token, closed []translate.Library) error {
	plan, left := (translate.Libraries{Plan: w.plan}).Leave(process, func(addr uint64) bool { return holding(closed, addr) >= 0 })
	if left == nil {
		return nil
	}
	in, _ := w.inLibrary(process, closed)
	p.libraries.set(process, fmt.Sprintf("%s was closed in %s at %s: it is measured again when the program has opened it again", in.Name(), process, time.Now().Format(time.RFC3339)))
	var dropped, others []omis.Token
	var texts []string
	var at, rest []translate.Place
	h, all := w.handles, plan.Conditional(w.handles)
	h.Requests = nil
	for i, request := range w.handles.Requests {
		place := slices.IndexFunc(w.plan.Places, func(pl translate.Place) bool { return pl.Equals(w.at[i]) })
		if place < 0 || !left[place] {
			h.Requests, at = append(h.Requests, request), append(at, w.at[i])
			continue
		}
		dropped = append(dropped, request)
		if now := plan.Places[place]; len(now.Processes) > 0 {
			texts, rest, others = append(texts, all[place]), append(rest, now), append(others, now.Processes...)
		}
	}
	err := suspended(ctx, &l.app.tool, others, func() error {
		if err := p.app.tool.do(ctx, translate.Delete(dropped)); err != nil {
			return err
		}
		defined, err := defineAll(ctx, p.app, texts)
		h.Requests, at = append(h.Requests, defined...), append(at, rest[:len(defined)]...)
		if state, _ := p.now(); err == nil && state == Active {
			err = p.app.tool.do(ctx, translate.Enable(defined))
		}
		return err
	})
	alter(p, w, plan, h, at)
	return err
}

// comeBack measures again in a process that has opened the region's library again. It does nothing if no library has
// the region.
func (l *loads) comeBack(ctx context.Context, p *Probe, w *installed, process omis.Token) error {
	processes := []omis.Token{process}
	if !w.plan.Open() {
		processes = p.app.processes.living()
	}
	t, err := p.app.weaving.targetsFor(ctx, p, processes)
	if err != nil {
		return err
	}
	newer, err := translate.Instrument(&p.request, t)
	if err != nil {
		return err
	}
	more := (translate.Libraries{Plan: w.plan}).Again(newer, process)
	if more == nil {
		return nil
	}
	if err := widen(ctx, p, w, more, more.Conditional(w.handles)[:len(more.Places)]); err != nil {
		return err
	}
	p.libraries.set(process, "")
	return nil
}

// suspended calls a function while processes are suspended.
func suspended(ctx context.Context, tool *connection, processes []omis.Token, do func() error) error {
	slices.Sort(processes)
	if processes = slices.Compact(processes); len(processes) == 0 {
		return do()
	}
	of := func(service string) error { return tool.do(ctx, translate.OfProcesses(service, processes)) }
	if err := of("thread_suspend"); err != nil {
		return errors.Join(err, do())
	}
	return errors.Join(do(), of("thread_resume"))
}
