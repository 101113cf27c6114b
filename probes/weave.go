package probes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes/deliver"
	"mirador/sir"
	"mirador/sir/weave"
)

// Sources are source files of a program, into which requests weave regions.
type Sources struct {
	Program sir.Program
	Files   []weave.Source
	Outs    []string // the URI that each file is written to, "" if it is not
	Modes   []fs.FileMode
}

// weaving is the state of weaving of an application, which guards it with op, and id and owner also with mu.
type weaving struct {
	app     *App
	id      string   // in programs that are built from the sources; "": there are none
	sources *sources // nil: requests weave nothing
	owner   int      // uid of who made the application without processes
}

// sources are what requests are woven into. They do not change.
type sources struct {
	Sources
	*weave.Weaving
	user  deliver.User // who writes the files
	bytes int64
}

// mostWoven limits the memory that the sources of all applications take.
const mostWoven = 512 << 20

// wovenBytes counts the texts of a registry.
type wovenBytes struct{ atomic.Int64 }

// Weave makes later requests to an application on regions of sources write these regions into the sources, when they
// are flushed. Their probes measure the processes that are built from what is written, as soon as these join the
// application. Other sources replace the former ones.
func (r *Registry) Weave(ctx context.Context, app string, s Sources) error {
	a, err := r.App(app)
	if err != nil {
		return err
	}
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return err
	}
	if err := a.weaving.take(s, userOf(ctx)); err != nil {
		return err
	}
	return a.writeSelf()
}

// take replaces the sources.
func (w *weaving) take(s Sources, u deliver.User) error {
	r := w.app.registry
	next := &sources{Sources: s, user: u}
	for i, f := range s.Files {
		if f.Fixed {
			continue
		}
		if err := r.queues.CheckReplace(s.Outs[i], u); err != nil {
			return failf(Forbidden, "cannot write woven sources: %v", err)
		}
	}
	id := w.known()
	if id == "" {
		var random [16]byte
		rand.Read(random[:])
		id = hex.EncodeToString(random[:])
	}
	var err error
	if next.Weaving, err = weave.New(id, &s.Program, s.Files); err != nil {
		return failf(CannotBeDone, "%v", err)
	}
	next.bytes = next.Memory()
	if next.bytes > mostWoven {
		return failf(CannotBeDone, "the sources would take %d MB of memory until they are woven, and all applications together may use %d MB: name fewer sources in a request with out", next.bytes>>20, mostWoven>>20)
	}
	if total := r.woven.Add(next.bytes - w.bytes()); total > mostWoven {
		r.woven.Add(w.bytes() - next.bytes)
		return failf(Unavailable, "the sources that all applications weave into would take %d MB of memory, and may take %d MB: release an application that weaves, or name fewer sources", total>>20, mostWoven>>20)
	}
	w.app.mu.Lock()
	w.id = id
	w.app.mu.Unlock()
	w.sources = next
	return nil
}

// bytes returns the memory that the sources take.
func (w *weaving) bytes() int64 {
	if w.sources == nil {
		return 0
	}
	return w.sources.bytes
}

// drop forgets the sources.
func (w *weaving) drop() {
	w.app.registry.woven.Add(-w.bytes())
	w.sources = nil
}

// has reports whether a request is about regions of the sources.
func (w *weaving) has(r *mir.InstrRequest) bool {
	return w.sources != nil && r.Region != nil && (w.sources.Has(r.Region.From) || w.sources.Has(r.Region.To))
}

// regionsOf returns the ids of the regions that a request names.
func regionsOf(r *mir.InstrRequest) []string {
	return slices.DeleteFunc([]string{r.Region.From, r.Region.To}, func(id string) bool { return id == "" })
}

// check checks a request on regions of the sources, as far as that is possible without a process.
func (w *weaving) check(ctx context.Context, r *mir.InstrRequest) error {
	a := w.app
	var errs Errors
	if _, err := a.attachNode(ctx); err != nil {
		return err
	}
	imagined := sir.Program{Weaving: w.id}
	for _, id := range regionsOf(r) {
		if w.sources != nil {
			if err := w.sources.Check(id); err != nil {
				errs = append(errs, translate.Errorf(CannotBeDone, r.Region.Pos, "%v", err))
			}
		}
		imagined.Markers = append(imagined.Markers, sir.Region{ID: id, Name: id, Form: sir.Woven, Code: &sir.Code{Entries: []uint64{1}, Exits: []uint64{2}}})
	}
	if len(errs) > 0 {
		return collected(errs)
	}
	module := translate.Module{Units: sir.NewIndex(&imagined), Locator: ofCode{}}
	t := &translate.Targets{Node: a.machine(), Lacks: a.registry.config.Lacks, Processes: []translate.Process{{Token: "p_0", Modules: []translate.Module{module}}}}
	_, err := translate.Instrument(r, t)
	return errors.Join(err, checkBudget(r))
}

// ofCode finds the places of regions in their own description.
type ofCode struct{}

func (ofCode) Entries(r *sir.Region) ([]uint64, error) { return r.Code.Entries, nil }
func (ofCode) Exits(r *sir.Region) ([]uint64, error)   { return r.Code.Exits, nil }

// write writes the sources with the regions of some probes, and those that were woven before. The error is for each of the
// probes.
func (w *weaving) write(ctx context.Context, list []*Probe) error {
	if len(list) == 0 {
		return nil
	}
	if w.sources == nil {
		return failf(Conflict, "the gateway has been started anew, and does not have the sources any more: send the sirreq again")
	}
	ids := map[string]bool{}
	for _, p := range w.app.Probes() {
		if state, work := p.now(); p.woven && (state == Woven || work != nil || slices.Contains(list, p)) {
			for _, id := range regionsOf(&p.request) {
				ids[id] = w.sources.Has(id)
			}
		}
	}
	maps.DeleteFunc(ids, func(_ string, known bool) bool { return !known })
	woven, err := w.sources.Weaving.Weave(slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return failf(CannotBeDone, "%v", err)
	}
	var files []deliver.Replacement
	for _, f := range woven {
		if uri := w.sources.Outs[f.Source]; uri != "" {
			if f.Suffix != "" {
				uri = strings.TrimSuffix(uri, path.Ext(uri)) + f.Suffix
			}
			files = append(files, deliver.Replacement{URI: uri, Text: f.Text, Mode: w.sources.Modes[f.Source]})
		}
	}
	if err := w.app.registry.queues.Replace(w.sources.user, files); err != nil {
		return failf(CannotBeDone, "%v", err)
	}
	for _, p := range list {
		p.change(Woven)
	}
	w.appear(ctx, w.app.processes.living())
	return nil
}

// Create makes an application without processes, which belongs to a user.
func (r *Registry) Create(name string, owner int) (*App, error) {
	return r.join(name, name, func(a *App) error {
		if len(a.processes.list()) == 0 {
			a.mu.Lock()
			a.weaving.owner = owner
			a.mu.Unlock()
		}
		return nil
	})
}

// weaves reports whether an application has or had woven sources.
func (r *Registry) weaves() bool {
	return slices.ContainsFunc(r.Apps(), func(a *App) bool { return a.weaving.known() != "" })
}

// WovenFor returns the applications whose woven sources a program was built from. The program is a file, or what a
// process executes, with its libraries, if pid is not 0.
func (r *Registry) WovenFor(path string, pid int) (names []string) {
	if !r.weaves() {
		return nil
	}
	ids := r.config.Runtime.Weavings(path, pid)
	for _, a := range r.Apps() {
		if id := a.weaving.known(); id != "" && slices.Contains(ids, id) {
			names = append(names, a.name)
		}
	}
	return names
}

// joinWoven adds a process of an application to the others whose woven sources its program and libraries were built
// from, if these belong to the user of the process: anybody can copy an id. It logs errors, because the process has
// joined the application that was asked for.
func (r *Registry) joinWoven(ctx context.Context, own *App, p Process) {
	for _, name := range r.WovenFor("", p.PID) {
		a, err := r.App(name)
		if err != nil || a == own || a.Status().Owner != p.UID {
			continue
		}
		if _, err := a.joined(false, func(a *App) error { return a.attach(ctx, []int{p.PID}) }); err != nil {
			r.config.Log.Warn("cannot add a process to the application that its sources were woven for", "app", name, "process", p.PID, "error", err)
		}
	}
}
