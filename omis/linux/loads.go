//go:build linux && amd64

package linux

import (
	"errors"
	"maps"
	"slices"

	"mirador/omis/linux/library"
	"mirador/omis/node"
)

// followLoads watches the function by which the dynamic linker reports loads and unloads, while
// calls of library functions are watched. A statically linked program has no dynamic linker, and
// loads nothing.
func (c *libraryCalls) followLoads() error {
	if c.notice != nil {
		return nil
	}
	linker, found := c.o.node.library.Linker(c.o.proc)
	if !found {
		return nil
	}
	notice := c.internal(linker.Notice, func(h *node.Hit) {
		if t := c.o.tracer.threads[h.TID]; t != nil {
			c.awaitLook(t)
		}
	})
	if err := c.o.events.watchAddr(notice); err != nil {
		return err
	}
	c.notice = notice
	return nil
}

// unfollowLoads ends this when the last watch on library calls was removed.
func (c *libraryCalls) unfollowLoads() {
	if c.notice == nil || c.any() {
		return
	}
	notice := c.notice
	c.notice = nil
	// If the write fails, the program has ended or the warden restores the byte.
	_ = c.o.events.unwatch(notice)
}

func (c *libraryCalls) any() bool { return len(c.watches()) > 0 }

// awaitLook keeps a thread until the code that it has loaded is watched.
func (c *libraryCalls) awaitLook(t *thread) {
	t.holds++
	c.loaders = append(c.loaders, t)
}

// lookAgain finds watched functions in new modules, and forgets those in modules that were
// unloaded.
func (c *libraryCalls) lookAgain() {
	if len(c.loaders) == 0 {
		return
	}
	waiting := c.loaders
	c.loaders = nil
	c.dropUnloaded()
	// Where the linker can have no breakpoint, later loads are not seen.
	_ = c.followLoads()
	for _, w := range c.watches() {
		// A missing function may be loaded later.
		_ = c.plantEntries(w)
	}
	for _, t := range waiting {
		releaseThread{t}.do(c.o)
	}
}

// plantEntries plants breakpoints at the entries of the functions that are loaded.
func (c *libraryCalls) plantEntries(w *watch) error {
	functions, err := c.o.node.library.Find(c.o.proc, w.Name)
	var later *library.NotLoaded
	switch {
	case errors.As(err, &later) && c.notice != nil:
		return nil
	case err != nil:
		return err
	}
	for _, f := range functions {
		if slices.ContainsFunc(w.library.entries, func(e *watch) bool { return e.Addr == f.Addr }) {
			continue
		}
		entry := c.internal(f.Addr, func(h *node.Hit) { c.entered(w, f, h) })
		if err := c.o.events.watchAddr(entry); err != nil {
			return err
		}
		w.library.entries = append(w.library.entries, entry)
	}
	return nil
}

// dropUnloaded forgets the breakpoints whose code was unloaded. A watch on such an address
// remains without effect: what is loaded there later is other code, which must get no INT3.
func (c *libraryCalls) dropUnloaded() {
	for _, b := range c.o.space.breakpoints {
		if !c.o.space.stands(b) {
			c.o.space.forgetBreakpoint(b)
		}
	}
	gone := func(w *watch) bool {
		if c.o.space.breakpoints[w.Addr] != nil {
			return false
		}
		delete(c.o.events.watches, w)
		return true
	}
	for _, w := range c.watches() {
		w.library.entries = slices.DeleteFunc(w.library.entries, gone)
		maps.DeleteFunc(w.library.returns, func(_ uint64, back *watch) bool { return gone(back) })
	}
}
