//go:build linux && amd64

package linux

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/patch"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
	"mirador/omis/program"
)

// patcher inserts code into the process and removes it. The process's ground, which outlives
// the owner, records the patches. The patcher belongs to the owner's goroutine.
type patcher struct{ o *owner }

// Patch: see node.Patcher.
func (n *Node) Patch(p omis.ProcID, list []node.Patch) ([]node.Patched, []error) {
	made, errs := make([]node.Patched, len(list)), make([]error, len(list))
	g, err := n.grounds.prepared(p)
	if err == nil {
		g.changing.Lock()
		defer g.changing.Unlock()
		err = n.grounds.patch(g, list, made, errs)
	}
	for i := range errs {
		if errs[i] == nil && made[i] == nil {
			errs[i] = err
		}
		errs[i] = noCode(list[i].Addr, errs[i])
	}
	return made, errs
}

// noCode turns an error into a refusal that names the requested address.
func noCode(addr uint64, err error) error {
	var refusal *program.Refusal
	var failure *omis.Error
	if err == nil || errors.As(err, &refusal) || errors.As(err, &failure) {
		return err
	}
	return &program.Refusal{Why: fmt.Sprintf("no code can be put at %#x: %v", addr, err), Passing: errors.Is(err, patch.ErrRaced)}
}

// attempts bounds how often a batch is tried that failed in part because of what threads were
// doing, or as a whole because of what the process mapped meanwhile.
const attempts = 4

func (gs *grounds) patch(g *ground, list []node.Patch, made []node.Patched, errs []error) error {
	rest := make([]int, len(list))
	for i := range rest {
		rest[i] = i
	}
	var err error
	for try := 0; len(rest) > 0 && try < attempts; try++ {
		some := make([]node.Patch, len(rest))
		for i, at := range rest {
			some[i] = list[at]
		}
		var program *image
		if program, err = gs.image(g.proc); err != nil {
			return err
		}
		program.former = g.spare.take()
		batch := g.site.Prepare(some, program)
		if _, err = gs.commit(g, batch); err != nil && !errors.Is(err, patch.ErrRaced) {
			return err
		}
		points, failed := batch.Results()
		var again []int
		for i, at := range rest {
			errs[at] = failed[i]
			switch {
			case failed[i] == nil:
				made[at] = points[i]
			case errors.Is(failed[i], patch.ErrRaced):
				again = append(again, at)
			}
		}
		if rest = again; len(rest) > 0 {
			time.Sleep(moment << try)
		}
	}
	return err
}

// Survey: see node.Patcher.
func (n *Node) Survey(p omis.ProcID, addrs []uint64) (notes []string, errs []error) {
	notes, errs = make([]string, len(addrs)), make([]error, len(addrs))
	g, err := n.grounds.prepared(p)
	var known *image
	if err == nil {
		known, err = n.grounds.image(p)
	}
	if err == nil {
		known.former = g.spare.take()
		defer func() { g.spare.leave(known.surveyors) }()
	}
	for i, addr := range addrs {
		if errs[i] = err; err == nil {
			notes[i], errs[i] = g.site.Survey(addr, known)
			errs[i] = noCode(addr, errs[i])
		}
	}
	return notes, errs
}

// Unpatch: see node.Patcher.
func (n *Node) Unpatch(p omis.ProcID, list []node.Patched) error {
	g := n.grounds.of(p)
	if g == nil {
		return nil // the patches ended with the program
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	points := make([]*patch.Point, 0, len(list))
	for _, patched := range list {
		if point, ok := patched.(*patch.Point); ok {
			points = append(points, point)
		}
	}
	begin, again := time.Now(), false // again: the patches were removed before
	for tries := 1; ; tries++ {
		batch := g.site.Withdraw(points)
		again = again || tries == 1 && batch.Void()
		suspended, err := n.grounds.commit(g, batch)
		if err == nil {
			err = batch.Err()
		}
		switch {
		case isEnded(err):
			return nil
		case err != nil:
			return err
		case !g.site.Lingers(points) || suspended:
			return nil
		case again || tries > attempts && time.Since(begin) > unpatchPatience:
			return omis.Errorf(omis.OSError, "a thread of process %d may still run code that was taken away: it is stopped there, or in a signal handler that interrupted it", p.PID)
		}
		time.Sleep(handlerPatience)
	}
}

// unpatchPatience bounds the time for which Unpatch waits for threads that signal handlers
// keep in removed code.
const unpatchPatience = time.Second

func (gs *grounds) commit(g *ground, b *patch.Batch) (suspended bool, err error) {
	c := &commit{ground: g, batch: b}
	err = gs.n.owners.ask(g.proc, c)
	return c.suspended, err
}

// commit is the request to an owner to make the changes of a batch.
type commit struct {
	ground    *ground
	batch     *patch.Batch
	suspended bool // the process is suspended
}

func (c *commit) do(o *owner) error {
	defer o.restIfIdle()
	err := o.patcher.commit(c.ground, c.batch)
	c.suspended = o.halts.pauses > 0
	return err
}

// commit makes the changes of a batch. If the process is suspended, threads stay in removed
// code and complete it when they continue, so that a hit that has begun is not lost.
func (p *patcher) commit(g *ground, b *patch.Batch) error {
	if err := p.o.enterProgram(); err != nil {
		return err
	}
	stays := p.o.halts.pauses > 0
	if !stays {
		b.Silence()
	}
	if t := p.sleeper(); t != nil && b.NeedsRoom() {
		p.furnishBy(t, g, b)
	}
	var err error
	if !b.NeedsRoom() {
		err = b.Fill()
	}
	begin := time.Now()
	p.o.tracer.freeze(nil)
	defer func() {
		p.o.endFreeze()
		g.stood = time.Since(begin)
		g.site.Tidy()
	}()
	if !stays {
		p.o.meeting.comeOut(nil)
	}
	if p.o.space.memory == nil || g.Gone() {
		return ended(p.o.proc.PID)
	}
	if err == nil && b.NeedsRoom() {
		if err = b.Furnish(patched{host{p.o}}); err == nil {
			err = b.Fill()
		}
	}
	if err := b.Commit(patched{host{p.o}}, err); err != nil {
		return err
	}
	if stays {
		return p.reclaim(g)
	}
	return p.letOut(g)
}

// sleeper returns a thread that waits for something and can be stopped at once, nil if there
// is none.
func (p *patcher) sleeper() *thread {
	for _, t := range p.o.tracer.threads {
		if state, err := proc.ThreadState(t.pid, t.tid); t.kind <= unobserved && err == nil && state == "S" {
			return t
		}
	}
	return nil
}

// furnishBy maps memory by one thread while the others run, so that less remains to do while
// all are stopped.
func (p *patcher) furnishBy(one *thread, g *ground, b *patch.Batch) {
	p.o.tracer.freeze(func(t *thread) bool { return t == one })
	defer p.o.tracer.thaw()
	if !one.stopped() || p.o.tracer.threads[one.tid] != one || p.o.space.memory == nil || g.Gone() {
		return
	}
	// If it fails, it is tried again when all are stopped.
	_ = b.Furnish(patched{host{p.o}})
}

// letOut lets threads of the frozen process leave retired stubs, and frees the stubs.
func (p *patcher) letOut(g *ground) error {
	if !g.site.Retired() {
		return nil
	}
	for range attempts {
		late := p.standing(func(_ *thread, pc uint64) bool { return g.site.Inside(pc) })
		if len(late) == 0 || !p.goOnFor(moment, late) {
			break
		}
	}
	return p.reclaim(g)
}

// standing returns the stopped threads that can continue and whose program counter is
// selected.
func (p *patcher) standing(where func(t *thread, pc uint64) bool) (list []*thread) {
	for _, t := range p.o.tracer.threads {
		if t.kind > vforked || !t.stopped() || t.groupStopped() || t.inEvent() {
			continue
		}
		var regs ptrace.Regs
		if ptrace.GetRegs(t.tid, &regs) == nil && where(t, regs.Rip) {
			list = append(list, t)
		}
	}
	return list
}

// turnPatience bounds the time in which a thread must get a processor. Only other processes
// compete for it.
const turnPatience = 50 * time.Millisecond

// goOnFor lets stopped threads run for a moment, as many at a time as there are processors, so
// that each gets one. It returns false if they do not stop again.
func (p *patcher) goOnFor(d time.Duration, threads []*thread) bool {
	for some := range slices.Chunk(threads, runtime.NumCPU()) {
		p.takeTurns(d, some)
		if !p.o.tracer.pump(patience, func() bool { return p.o.tracer.allStopped(some) }) {
			return false
		}
	}
	return true
}

func (p *patcher) takeTurns(d time.Duration, threads []*thread) {
	before := make([]uint64, len(threads))
	for i, t := range threads {
		before[i], _ = proc.Turns(t.pid, t.tid)
		t.stop = running
		_ = ptrace.Cont(t.tid, 0)
	}
	for i, t := range threads {
		for begin := time.Now(); time.Since(begin) < turnPatience; time.Sleep(d) {
			if now, err := proc.Turns(t.pid, t.tid); err != nil || now != before[i] {
				break
			}
		}
	}
	time.Sleep(d)
	for _, t := range threads {
		p.o.tracer.interrupt(t)
	}
}

// reclaim frees retired stubs that no thread is in.
func (p *patcher) reclaim(g *ground) error {
	threads, err := patched{host{p.o}}.Threads()
	if err != nil {
		return err
	}
	inside, err := patched{host{p.o}}.Held(g.site.Inside)
	if err != nil {
		return err
	}
	for _, t := range threads {
		inside = append(inside, t.PC)
	}
	g.site.Reclaim(func(s patch.Stub) bool {
		return slices.ContainsFunc(inside, s.Contains)
	})
	return nil
}

// patched is the frozen process as package patch sees it.
type patched struct{ host }

var _ patch.Process = patched{}

func (p patched) CallOn(s string, number uint64, more ...uint64) (int64, error) {
	var block [resident.BlockSize]byte
	copy(block[:], s)
	return p.o.injector.injectOn(&block, func(at uint64) resident.Call {
		c := resident.Call{Number: number, Args: [6]uint64{at}}
		copy(c.Args[1:], more)
		return c
	})
}

func (p patched) Threads() ([]patch.Thread, error) {
	list := make([]patch.Thread, 0, len(p.o.tracer.threads))
	for _, t := range p.o.tracer.threads {
		if t.kind > vforked {
			continue // it has memory of its own
		}
		var regs ptrace.Regs
		if !t.stopped() || ptrace.GetRegs(t.tid, &regs) != nil {
			return nil, fmt.Errorf("thread %d cannot be stopped: it waits uninterruptibly in the kernel", t.tid)
		}
		thread := patch.Thread{TID: t.tid, PC: p.o.space.leads(regs.Rip)}
		if thread.PC == regs.Rip {
			thread.Move = func(pc uint64) error { return ptrace.SetPC(t.tid, pc) }
		}
		list = append(list, thread)
	}
	return list, nil
}
