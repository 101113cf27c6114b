//go:build linux && amd64

package linux

import (
	"errors"
	"slices"

	"mirador/omis/linux/library"
	"mirador/omis/node"
)

// followLoads has the dynamic linker tell when it has loaded or unloaded
// something, as long as calls of library functions are watched. A program that
// was linked statically has none, and loads nothing.
func (o *owner) followLoads() error {
	if o.notice != nil {
		return nil
	}
	linker, found := o.node.library.Linker(o.proc)
	if !found {
		return nil
	}
	notice := o.internal(linker.Notice, func(h *node.Hit) {
		if t := o.threads[h.TID]; t != nil {
			o.awaitLook(t)
		}
	})
	if err := o.watchAddr(notice); err != nil {
		return err
	}
	o.notice = notice
	return nil
}

// unfollowLoads ends that with the last watch on library calls.
func (o *owner) unfollowLoads() {
	if o.notice == nil || o.watchesLibraries() {
		return
	}
	notice := o.notice
	o.notice = nil
	// What cannot be written any more has ended, or the warden restores it.
	_ = o.unwatch(notice)
}

func (o *owner) watchesLibraries() bool {
	return len(o.kinds[node.EventLibCallStarted])+len(o.kinds[node.EventLibCallEnded]) > 0
}

// awaitLook keeps a thread until what it has loaded is watched: its code must
// not run before.
func (o *owner) awaitLook(t *thread) {
	t.holds++
	o.loaders = append(o.loaders, t)
}

// lookAgain looks for watched functions in modules that came, and forgets those
// in modules that went.
func (o *owner) lookAgain() {
	if len(o.loaders) == 0 {
		return
	}
	waiting := o.loaders
	o.loaders = nil
	o.dropUnloaded()
	// Where no breakpoint can stand in the linker, what it loads later is not seen.
	_ = o.followLoads()
	for _, kind := range []node.EventKind{node.EventLibCallStarted, node.EventLibCallEnded} {
		for _, w := range o.kinds[kind] {
			// A function that is not there, or not any more, is awaited.
			_ = o.plantEntries(w)
		}
	}
	for _, t := range waiting {
		releaseThread{t}.do(o)
	}
}

// plantEntries plants the breakpoints at the entries of the functions that there
// are by now.
func (o *owner) plantEntries(w *watch) error {
	functions, err := o.node.library.Find(o.proc, w.Name)
	var later *library.NotLoaded
	switch {
	case errors.As(err, &later) && o.notice != nil:
		return nil
	case err != nil:
		return err
	}
	for _, f := range functions {
		if slices.ContainsFunc(w.library.entries, func(e *watch) bool { return e.Addr == f.Addr }) {
			continue
		}
		entry := o.internal(f.Addr, func(h *node.Hit) { o.libraryEntered(w, f, h) })
		if err := o.watchAddr(entry); err != nil {
			return err
		}
		w.library.entries = append(w.library.entries, entry)
	}
	return nil
}

// dropUnloaded forgets the breakpoints whose code is no longer there. A watch on
// such an address stands on without effect: what may be loaded there later is
// other code, into whose instructions no INT3 may be written.
func (o *owner) dropUnloaded() {
	for _, b := range o.space.breakpoints {
		if !o.space.stands(b) {
			o.space.forgetBreakpoint(b)
		}
	}
	gone := func(w *watch) bool {
		if o.space.breakpoints[w.Addr] != nil {
			return false
		}
		delete(o.watches, w)
		return true
	}
	for kind, watches := range o.kinds {
		if !isLibraryCall(kind) {
			continue
		}
		for _, w := range watches {
			w.library.entries = slices.DeleteFunc(w.library.entries, gone)
			for addr, back := range w.library.returns {
				if gone(back) {
					delete(w.library.returns, addr)
				}
			}
		}
	}
}
