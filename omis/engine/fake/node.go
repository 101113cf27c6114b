// Package fake implements a scripted node for tests: its processes exist only in memory, and
// events happen when the test calls a method. So the tests of the engine, of probes and of the
// gateway need no privileges and no real process. Other code must not import this package.
//
// A node has every capability. Each method first calls Script, by which a test can make calls
// fail, wait, or be counted.
//
// Like a real node, it calls the handlers of a process one at a time on a goroutine
// that owns the process, and holds a thread until every holder has released it.
package fake

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Node is a node of the fake. New makes one; tests set its fields before the engine uses it.
type Node struct {
	// Script is called with a method's name before the method does anything. If it returns
	// an error, the method returns the same error.
	Script func(method string) error
	// Groups holds the components of node_get_info, by bits.
	Groups [14][]omis.Value
	// Blind holds the results of CanDetect.
	Blind map[node.EventKind]error
	// Lacks holds the results of LacksForEvent, LacksCRIU the result of LacksForCheckpoint.
	Lacks     map[node.EventKind]error
	LacksCRIU error
	// Disk contains the checkpoints; nodes may share it.
	Disk *Disk

	name  string
	start time.Time

	mu      sync.Mutex
	procs   map[int]*Process
	nextPID int
	planted []node.Watch // every watch that was ever set, in order
	launch  []node.Launch
	post    post
	costs   map[string]program.Cost
	cpu     map[int]int64 // CPU time of threads
}

var _ node.Node = (*Node)(nil)

// New makes a node without processes.
func New(name string) *Node {
	n := &Node{name: name, start: time.Now(), procs: make(map[int]*Process), nextPID: 5000, Disk: NewDisk()}
	n.post.node = n
	return n
}

// ask calls Script, if it is set.
func (n *Node) ask(method string) error {
	if n.Script == nil {
		return nil
	}
	return n.Script(method)
}

func (n *Node) Name() string { return n.name }

// Now returns the time since New; hits have times of the same clock.
func (n *Node) Now() int64 { return int64(time.Since(n.start)) }

func (n *Node) Identify(pid int) (omis.ProcID, error) {
	if err := n.ask("Identify"); err != nil {
		return omis.ProcID{}, err
	}
	p, err := n.find(pid)
	if err != nil {
		return omis.ProcID{}, err
	}
	return p.ID, nil
}

func (n *Node) find(pid int) (*Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.procs[pid]
	if p == nil {
		return nil, omis.Errorf(omis.UnknownObject, "there is no process %d", pid)
	}
	if p.Refuse != nil {
		return nil, p.Refuse
	}
	return p, nil
}

// called calls Script for a method and finds the process.
func (n *Node) called(method string, id omis.ProcID) (*Process, error) {
	if err := n.ask(method); err != nil {
		return nil, err
	}
	return n.byID(id)
}

func (n *Node) byID(id omis.ProcID) (*Process, error) {
	p, err := n.find(id.PID)
	if err == nil && p.ID != id {
		err = omis.Errorf(omis.UnknownObject, "process %d has ended", id.PID)
	}
	return p, err
}

func (n *Node) Launch(l node.Launch) (omis.ProcID, error) {
	n.mu.Lock()
	n.nextPID++
	pid := n.nextPID
	n.launch = append(n.launch, l)
	n.mu.Unlock()
	p := n.Add(pid, append([]string{l.Path}, l.Args...), pid)
	p.Threads[0].Stopped = true
	return p.ID, nil
}

// Launched returns the arguments of all calls of Launch, in order.
func (n *Node) Launched() []node.Launch {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.launch)
}

// Planted returns all watches that were ever set, in order, including cancelled ones.
func (n *Node) Planted() []node.Watch {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.planted)
}

func (n *Node) ProcInfo(id omis.ProcID, _ node.ProcFields) (node.ProcInfo, error) {
	p, err := n.called("ProcInfo", id)
	if err != nil {
		return node.ProcInfo{}, err
	}
	return p.Info, nil
}

func (n *Node) Threads(id omis.ProcID) ([]int, error) {
	p, err := n.called("Threads", id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var tids []int
	for _, t := range p.Threads {
		tids = append(tids, t.TID)
	}
	return tids, nil
}

func (n *Node) ThreadInfo(id omis.ProcID, tid int, _ node.ThreadFields) (node.ThreadInfo, error) {
	p, err := n.called("ThreadInfo", id)
	if err != nil {
		return node.ThreadInfo{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.thread(tid)
	if err != nil {
		return node.ThreadInfo{}, err
	}
	return t.Info, nil
}

func (n *Node) Modules(id omis.ProcID) ([]node.Module, error) {
	p, err := n.called("Modules", id)
	if err != nil {
		return nil, err
	}
	return p.Modules, nil
}

func (n *Node) Backtraces(id omis.ProcID, tids []int, depth int) ([]node.Backtrace, error) {
	p, err := n.called("Backtraces", id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.BacktraceCalls++
	list := make([]node.Backtrace, len(tids))
	for i, tid := range tids {
		t, err := p.thread(tid)
		if err != nil {
			list[i].Err = err
			continue
		}
		list[i].Frames = t.Frames
		if depth > 0 && depth < len(t.Frames) {
			list[i].Frames = t.Frames[:depth]
		}
	}
	return list, nil
}

// Signal records a signal. The signal 9 ends the process.
func (n *Node) Signal(id omis.ProcID, sig int) error {
	p, err := n.called("Signal", id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.Signals = append(p.Signals, sig)
	p.mu.Unlock()
	if sig == 9 {
		p.End()
	}
	return nil
}

func (n *Node) Stop(id omis.ProcID, tids []int) error {
	return n.setStopped("Stop", id, tids, true)
}

func (n *Node) Continue(id omis.ProcID, tids []int) error {
	return n.setStopped("Continue", id, tids, false)
}

// setStopped changes the state of threads, and raises an event for each thread whose state was
// another.
func (n *Node) setStopped(method string, id omis.ProcID, tids []int, stopped bool) error {
	p, err := n.called(method, id)
	if err != nil {
		return err
	}
	event := node.EventThreadContinued
	if stopped {
		event = node.EventThreadStopped
	}
	for _, tid := range p.change(tids, func(t *Thread) bool {
		was := t.Stopped
		t.Stopped = stopped
		return was != stopped
	}) {
		p.Hit(event, node.Hit{TID: tid, Held: node.HeldByPtrace})
	}
	return nil
}

// Close ends the goroutines that own the processes.
func (n *Node) Close(context.Context) error {
	n.mu.Lock()
	list := make([]*Process, 0, len(n.procs))
	for _, p := range n.procs {
		list = append(list, p)
	}
	n.mu.Unlock()
	slices.SortFunc(list, func(a, b *Process) int { return cmp.Compare(a.ID.PID, b.ID.PID) })
	for _, p := range list {
		p.close()
	}
	return nil
}
