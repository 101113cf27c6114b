//go:build linux && amd64

package linux

import (
	"errors"
	"slices"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
	"mirador/omis/linux/library"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// libraryCalls owns what the watches on calls of library functions have in common.
type libraryCalls struct {
	o       *owner
	due     []returnPlace // breakpoints that threads wait for
	notice  *watch        // at the function by which the dynamic linker reports loads
	loaders []*thread     // threads that wait until what they have loaded is watched
}

// libraryWatch is the state of a watch on calls of a library function: breakpoints at the
// function's entries and, for the ends of calls, at the addresses that the application's calls
// return to. Return addresses on the stack are not changed, since exceptions and backtraces
// need them. The watch survives the modules with its breakpoints, and the program (see
// lookAgain).
type libraryWatch struct {
	entries []*watch
	returns map[uint64]*watch
	open    map[int][]openCall // by thread, innermost last
}

// openCall is a call that has not returned. The stack pointer distinguishes it from others
// that return to the same place.
type openCall struct {
	function *library.Function
	args     []prototype.Arg
	sp       uint64 // when it returns
}

// returnPlace is a place that needs a breakpoint before a thread may continue.
type returnPlace struct {
	t    *thread
	w    *watch
	addr uint64
}

func isLibraryCall(kind node.EventKind) bool {
	return kind == node.EventLibCallStarted || kind == node.EventLibCallEnded
}

// findLibraryCalls checks whether the function that the watch names is loaded, or may be
// loaded later. What it reads of files is cached, so that the owner need not keep its threads
// waiting for that later.
func (n *Node) findLibraryCalls(w *watch) error {
	var later *library.NotLoaded
	if _, err := n.library.Find(w.Proc, w.Name); err != nil && !errors.As(err, &later) {
		return err
	}
	w.library = &libraryWatch{returns: make(map[uint64]*watch), open: make(map[int][]openCall)}
	return nil
}

// watch plants the breakpoints at the entries.
func (c *libraryCalls) watch(w *watch) error {
	err := c.followLoads()
	if err == nil {
		err = c.plantEntries(w)
	}
	if err != nil {
		c.unwatch(w)
	}
	return err
}

// internal returns a watch of the monitor's own on an address.
func (c *libraryCalls) internal(addr uint64, handle func(*node.Hit)) *watch {
	return &watch{Watch: node.Watch{Event: node.EventReachedAddr, Proc: c.o.proc, Addr: addr}, handle: handle, inner: true}
}

// unwatch removes all breakpoints of a watch.
func (c *libraryCalls) unwatch(w *watch) {
	places := w.library.entries
	for _, r := range w.library.returns {
		places = append(places, r)
	}
	w.library.entries, w.library.returns = nil, make(map[uint64]*watch)
	for _, place := range places {
		// If the write fails, the program has ended or the warden restores the byte.
		_ = c.o.events.unwatch(place)
	}
	c.unfollowLoads()
}

func (c *libraryCalls) readProcess(buf []byte, addr uint64) (int, error) {
	n, err := proc.ReadMemory(c.o.proc.PID, addr, buf)
	c.o.veil.hide(addr, buf[:n])
	return n, err
}

// entered is called when a thread is at the entry of a watched function.
func (c *libraryCalls) entered(w *watch, f *library.Function, h *node.Hit) {
	t := c.o.tracer.threads[h.TID]
	if t == nil || !w.concerns(t) {
		return
	}
	start, _ := f.NeedsFP()
	r, ok := c.registers(t, start)
	if !ok {
		return
	}
	back, err := library.ReturnAddress(r, c.readProcess)
	if err != nil || !f.ByApplication(back) {
		return
	}
	values, args := f.Started(r, c.readProcess)
	if w.Event == node.EventLibCallStarted {
		c.tell(w, t, h, values)
		return
	}
	returned := h.SP + 8
	w.library.open[t.tid] = append(dropLeft(w.library.open[t.tid], returned), openCall{f, args, returned})
	if w.library.returns[back] == nil {
		t.holds++
		c.due = append(c.due, returnPlace{t, w, back})
	}
}

// dropLeft drops the calls that a thread has left without returning, by an exception or
// longjmp: their frames were at or below sp.
func dropLeft(open []openCall, sp uint64) []openCall {
	for len(open) > 0 && open[len(open)-1].sp <= sp {
		open = open[:len(open)-1]
	}
	return open
}

// plantReturns plants the breakpoints at return addresses, and continues the threads that wait
// for them.
func (c *libraryCalls) plantReturns() {
	for len(c.due) > 0 {
		p := c.due[0]
		c.due = c.due[1:]
		if _, stands := c.o.events.watches[p.w]; stands && p.w.library.returns[p.addr] == nil {
			back := c.internal(p.addr, func(h *node.Hit) { c.returned(p.w, h) })
			// Where no breakpoint is possible, the ends of these calls are not seen.
			if c.o.events.watchAddr(back) == nil {
				p.w.library.returns[p.addr] = back
			}
		}
		releaseThread{p.t}.do(c.o)
	}
}

// returned is called when a thread is where a watched call may return to.
func (c *libraryCalls) returned(w *watch, h *node.Hit) {
	open := dropLeft(w.library.open[h.TID], h.SP-1)
	w.library.open[h.TID] = open
	t := c.o.tracer.threads[h.TID]
	if t == nil || len(open) == 0 || open[len(open)-1].sp != h.SP {
		return
	}
	call := open[len(open)-1]
	w.library.open[h.TID] = open[:len(open)-1]
	_, end := call.function.NeedsFP()
	if r, ok := c.registers(t, end); ok {
		at := *h
		at.SP -= 8 // as at the start of the call, which timers are paired by
		c.tell(w, t, &at, call.function.Ended(call.args, r, c.readProcess))
	}
}

func (c *libraryCalls) registers(t *thread, floating bool) (*library.Registers, bool) {
	var r library.Registers
	if ptrace.GetRegs(t.tid, &r.PtraceRegs) != nil {
		return nil, false
	}
	if floating {
		var fp ptrace.FPRegs
		if ptrace.GetFPRegs(t.tid, &fp) != nil {
			return nil, false
		}
		r.FP = slices.Clone(fp.Bytes())
	}
	return &r, true
}

// tell calls the handler with a hit of its own, since other watches use the hit of
// the breakpoint.
func (c *libraryCalls) tell(w *watch, t *thread, at *node.Hit, values []omis.Value) {
	h := &hit{o: c.o, t: t}
	h.Hit = node.Hit{Proc: c.o.proc, TID: t.tid, Life: t.life, Addr: at.Addr, SP: at.SP, Time: at.Time, Params: values, Held: at.Held, Hold: h.hold, Now: c.o.node.Now}
	w.handle(&h.Hit)
}

// watches returns the watches on calls of library functions.
func (c *libraryCalls) watches() []*watch {
	return slices.Concat(c.o.events.kinds[node.EventLibCallStarted], c.o.events.kinds[node.EventLibCallEnded])
}

// forgetThread is called when a thread has ended, since another thread may get its id.
func (c *libraryCalls) forgetThread(t *thread) {
	for _, w := range c.watches() {
		delete(w.library.open, t.tid)
	}
}

// forget is called when the program has ended in which the calls were made.
func (c *libraryCalls) forget() {
	c.notice, c.due, c.loaders = nil, nil, nil
	for _, w := range c.watches() {
		w.library.entries, w.library.returns = nil, make(map[uint64]*watch)
		clear(w.library.open)
	}
}
