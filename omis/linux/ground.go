//go:build linux && amd64

package linux

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/patch"
	"mirador/omis/node"
	"mirador/omis/program"
)

// ground is a process with patches. It outlives the owner: the process is traced only while
// patches are inserted or removed.
type ground struct {
	node   *Node
	proc   omis.ProcID
	memory *os.File // of the program that had the patches; empty after it executed another
	shared *patch.Shared
	tid    int32
	self   bool
	site   *patch.Site
	left   []node.Patched
	stood  time.Duration // for which the process was stopped for the last change

	changing sync.Mutex // one batch at a time
	spare    spare
}

var (
	_ node.Patcher  = (*Node)(nil)
	_ node.Leftover = (*ground)(nil)
)

func (g *ground) Shared() []byte { return g.shared.Bytes }
func (g *ground) Base() uint64   { return g.shared.Base }

// NextData: see patch.Shared. Package inline asks for it.
func (g *ground) NextData(from int) (begin, end int, ok bool) { return g.shared.NextData(from) }

func (g *ground) TID() int32 { return g.tid }
func (g *ground) Self() bool { return g.self }

// Left: see node.Leftover.
func (g *ground) Left() []node.Patched { return g.left }

// Gone: see node.Ground. A memory without users reads as an empty file.
func (g *ground) Gone() bool {
	var b [1]byte
	n, err := g.memory.ReadAt(b[:], int64(g.shared.Base))
	return n == 0 || err != nil
}

// Close: see node.Ground.
func (g *ground) Close() error {
	g.node.grounds.remove(g)
	g.memory.Close()
	return g.shared.Close()
}

// Ground: see node.Patcher.
func (n *Node) Ground(p omis.ProcID) (node.Ground, error) {
	g, err := n.grounds.prepared(p)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// grounds are the grounds of the processes that code is put into. Its methods may be called
// from any goroutine.
type grounds struct {
	n *Node

	mu     sync.Mutex
	byProc map[omis.ProcID]*ground
}

func (gs *grounds) add(g *ground) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.byProc[g.proc] = g
}

func (gs *grounds) remove(g *ground) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.byProc[g.proc] == g {
		delete(gs.byProc, g.proc)
	}
}

// prepared returns the ground of a process, and makes it if there is none.
func (gs *grounds) prepared(p omis.ProcID) (*ground, error) {
	if g := gs.of(p); g != nil {
		return g, nil
	}
	var err error
	for try := range attempts {
		c := &prepareGround{}
		if err = gs.n.owners.ask(p, c); !errors.Is(err, errNoIdentity) {
			return c.ground, err
		}
		time.Sleep(time.Millisecond << try) // a new thread does not know its number yet
	}
	return nil, program.Refuse(err)
}

// of returns the ground of a process's program, nil if there is none.
func (gs *grounds) of(p omis.ProcID) *ground {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.byProc[p]
	if g != nil && g.Gone() {
		delete(gs.byProc, p)
		return nil
	}
	return g
}

// forget removes the ground of a process whose program has ended.
func (gs *grounds) forget(p omis.ProcID) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	delete(gs.byProc, p)
}

// isPatched reports whether a patch is in a range of the program.
func (p *patcher) isPatched(begin, end uint64) bool {
	g := p.o.node.grounds.of(p.o.proc)
	return g != nil && g.site.Covers(begin, end)
}

// prepareGround is the request to an owner to make the ground of its process: see ground.
type prepareGround struct{ ground *ground }

func (c *prepareGround) do(o *owner) (err error) {
	if c.ground = o.node.grounds.of(o.proc); c.ground != nil {
		return nil // another request was first
	}
	defer o.restIfIdle()
	c.ground, err = o.patcher.prepareGround()
	return err
}

func (p *patcher) prepareGround() (*ground, error) {
	if err := p.o.enterProgram(); err != nil {
		return nil, err
	}
	if err := p.barsPatches(); err != nil {
		return nil, program.Refuse(err)
	}
	memory, err := openMemory(p.o.proc.PID)
	if err != nil {
		return nil, p.o.tracer.refused(err)
	}
	p.o.tracer.freeze(nil)
	defer p.o.endFreeze()
	g := &ground{node: p.o.node, proc: p.o.proc, memory: memory}
	if err := sanely(func() error { return p.furnish(g) }); err != nil {
		if g.shared != nil {
			g.shared.Close()
		}
		memory.Close()
		return nil, err
	}
	p.o.node.grounds.add(g)
	return g, nil
}

// sanely calls a function that reads what an earlier monitor left in memory that the process
// can write. A fault that this causes in the monitor affects only the process.
func sanely(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			fault, is := p.(runtime.Error)
			if !is {
				panic(p)
			}
			err = &program.Refusal{Why: fmt.Sprintf("the process has damaged what an earlier monitor left in it: %v", fault)}
		}
	}()
	return do()
}

// furnish makes the ground of the frozen process, or takes over an existing one.
func (p *patcher) furnish(g *ground) error {
	if p.o.space.memory == nil {
		return ended(p.o.proc.PID)
	}
	var err error
	if g.tid, g.self, err = p.identityPlace(); err != nil {
		return err
	}
	mapped, err := proc.Maps(p.o.proc.PID)
	if err != nil {
		return err
	}
	site, inherited := patch.Adopt(g.memory, mapped)
	if site == nil {
		if err := p.share(g); err != nil {
			return err
		}
		g.site = patch.NewSite(g.memory, g.shared.Base, uint64(len(g.shared.Bytes)))
		return nil
	}
	g.site = site
	if !inherited {
		if taken, err := p.reopen(g, mapped); taken || err != nil {
			return err
		}
	}
	return p.beginAnew(g, inherited)
}

// reopen takes over what an earlier monitor left, with the memory it shared. It returns false
// if the memory is not available, or removed code may still write to it. It returns an error
// if the earlier monitor still exists.
func (p *patcher) reopen(g *ground, mapped proc.Mappings) (bool, error) {
	base, size := g.site.Base()
	m, ok := mapped.At(base)
	if !ok || m.Start != base || m.End-m.Start != size {
		return false, nil
	}
	shared, err := patch.Reopen(p.o.proc.PID, m)
	switch {
	case errors.Is(err, patch.ErrInUse):
		return false, program.Refuse(err)
	case err != nil:
		return false, nil
	}
	g.shared, g.left = shared, g.site.Points()
	if len(g.left) > 0 {
		return true, nil
	}
	// The memory may keep values without any code at this moment.
	if p.letOut(g) == nil && !g.site.Retired() {
		g.site.Tidy()
		return true, nil
	}
	shared.Close()
	return false, nil
}

// beginAnew removes what an earlier monitor left, and makes new shared memory.
func (p *patcher) beginAnew(g *ground, inherited bool) error {
	base, size := g.site.Base()
	batch := g.site.WithdrawAll()
	batch.Silence()
	err := batch.Commit(patched{host{p.o}}, nil)
	if err == nil {
		err = batch.Err()
	}
	if err == nil {
		err = p.letOut(g)
		g.site.Tidy()
	}
	if err != nil {
		return program.Refuse(err)
	}
	if inherited && !g.site.Retired() {
		// The mapping would keep the memory of the parent alive.
		_, _ = patched{host{p.o}}.Call(unix.SYS_MUNMAP, base, size)
	}
	if err := p.share(g); err != nil {
		return err
	}
	if err := g.site.Use(g.shared.Base, uint64(len(g.shared.Bytes))); err != nil {
		g.shared.Close()
		return err
	}
	return nil
}

// enterProgram attaches to the process, and opens its memory.
func (o *owner) enterProgram() error {
	if err := o.attach(); err != nil {
		return err
	}
	return o.space.settleIn()
}

// endFreeze ends a freeze. If nothing else needs tracing, the process is released without
// another stop.
func (o *owner) endFreeze() {
	if !o.needsTracing() {
		o.leave()
	}
	o.tracer.thaw()
}

// barsPatches returns why code cannot be put into the process, nil if it can.
func (p *patcher) barsPatches() error {
	if same, err := proc.SameNumbers(p.o.proc.PID); err != nil || !same {
		return fmt.Errorf("the process is in another pid namespace, and its threads have other numbers there")
	}
	return p.o.tracer.barsCode("by which memory is mapped")
}

// share maps the memory of a ground in the frozen process.
func (p *patcher) share(g *ground) error {
	mapped, err := proc.Maps(p.o.proc.PID)
	if err != nil {
		return ended(p.o.proc.PID)
	}
	if g.shared, err = patch.Share(patched{host{p.o}}, p.o.proc.PID, mapped); err != nil {
		return program.Refuse(err)
	}
	return nil
}
