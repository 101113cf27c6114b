//go:build linux && amd64

package linux

import (
	"fmt"
	"os"
	"sync"

	"mirador/omis"
	"mirador/omis/linux/patch"
	"mirador/omis/linux/proc"
)

// ground is a process that code is put into. It outlives the owner: a process with
// patches is traced while they come or go, and not in between.
type ground struct {
	node   *Node
	proc   omis.ProcID
	memory *os.File // that of the program it had; empty when it executes another
	shared *patch.Shared
	tid    int32
	self   bool
	site   *patch.Site

	changing sync.Mutex // one batch at a time
}

var (
	_ omis.Patcher = (*Node)(nil)
	_ omis.Ground  = (*ground)(nil)
)

func (g *ground) Shared() []byte { return g.shared.Bytes }
func (g *ground) Base() uint64   { return g.shared.Base }
func (g *ground) TID() int32     { return g.tid }
func (g *ground) Self() bool     { return g.self }

// Gone: see omis.Ground. A memory without users reads as an empty file.
func (g *ground) Gone() bool {
	var b [1]byte
	n, err := g.memory.ReadAt(b[:], int64(g.shared.Base))
	return n == 0 || err != nil
}

// Close: see omis.Ground.
func (g *ground) Close() error {
	g.node.mu.Lock()
	if g.node.grounds[g.proc] == g {
		delete(g.node.grounds, g.proc)
	}
	g.node.mu.Unlock()
	g.memory.Close()
	return g.shared.Close()
}

// Ground: see omis.Patcher.
func (n *Node) Ground(p omis.ProcID) (omis.Ground, error) {
	g, err := n.ground(p)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (n *Node) ground(p omis.ProcID) (*ground, error) {
	if g := n.groundOf(p); g != nil {
		return g, nil
	}
	c := &prepareGround{answer: newAnswer()}
	if err := n.ask(p, c, c.answer); err != nil {
		return nil, err
	}
	return c.ground, nil
}

// groundOf is that of a process's program; nil: there is none.
func (n *Node) groundOf(p omis.ProcID) *ground {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.grounds[p]
	if g != nil && g.Gone() {
		delete(n.grounds, p)
		return nil
	}
	return g
}

// forgetGround is called when a process's program has ended.
func (n *Node) forgetGround(p omis.ProcID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.grounds, p)
}

// isPatched tells whether code was put where a range of the program is.
func (o *owner) isPatched(begin, end uint64) bool {
	g := o.node.groundOf(o.proc)
	return g != nil && g.site.Covers(begin, end)
}

// prepareGround makes the ground of a process.
type prepareGround struct {
	*answer
	ground *ground
}

func (c *prepareGround) do(o *owner) {
	if g := o.node.groundOf(o.proc); g != nil {
		c.ground = g // somebody else asked first
		c.give(nil)
		return
	}
	var err error
	c.ground, err = o.prepareGround()
	o.restIfIdle()
	c.give(err)
}

func (o *owner) prepareGround() (*ground, error) {
	if err := o.enterProgram(); err != nil {
		return nil, err
	}
	if err := o.barsPatches(); err != nil {
		return nil, &omis.Refusal{Why: err.Error()}
	}
	memory, err := openMemory(o.proc.PID)
	if err != nil {
		return nil, o.refused(err)
	}
	o.freeze(nil)
	defer o.endFreeze()
	g := &ground{node: o.node, proc: o.proc, memory: memory}
	if err := o.share(g); err != nil {
		memory.Close()
		return nil, err
	}
	g.site = patch.NewSite(memory, g.shared.Base, uint64(len(g.shared.Bytes)))
	o.node.mu.Lock()
	o.node.grounds[o.proc] = g
	o.node.mu.Unlock()
	return g, nil
}

// enterProgram attaches to the process, and opens its memory.
func (o *owner) enterProgram() error {
	switch {
	case o.closing:
		return errClosed()
	case o.ended:
		return ended(o.proc.PID)
	}
	if err := o.attach(); err != nil {
		return err
	}
	return o.settleIn()
}

// endFreeze ends a freeze; a process that nothing else stands on is let go without
// being stopped once more for that.
func (o *owner) endFreeze() {
	if !o.needsTracing() {
		o.leave()
	}
	o.thaw()
}

// barsPatches tells why code cannot be put into the process.
func (o *owner) barsPatches() error {
	mine, _ := os.Readlink("/proc/self/ns/pid")
	if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", o.proc.PID)); err != nil || theirs != mine {
		return fmt.Errorf("the process is in another pid namespace, and its threads know themselves by other numbers")
	}
	for _, t := range o.threads {
		s, err := proc.ReadThreadStatus(t.pid, t.tid)
		switch {
		case err != nil:
		case s.Seccomp != 0:
			return fmt.Errorf("a filter of the process may refuse the system calls that it takes to get memory")
		case s.ShadowStack:
			return fmt.Errorf("the process has a shadow stack")
		}
	}
	return nil
}

// share has the frozen process map the memory of a ground.
func (o *owner) share(g *ground) error {
	if o.space.memory == nil {
		return ended(o.proc.PID)
	}
	var err error
	if g.tid, g.self, err = o.identityPlace(); err != nil {
		return &omis.Refusal{Why: err.Error()}
	}
	s, err := proc.ReadStatus(o.proc.PID)
	if err != nil {
		return ended(o.proc.PID)
	}
	if g.shared, err = patch.Share(patched{host{o}}, o.proc.PID, s.Locked > 0); err != nil {
		return &omis.Refusal{Why: err.Error()}
	}
	return nil
}
