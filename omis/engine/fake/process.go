package fake

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
)

// Process is a process of the fake. What a test sets, it sets before the engine
// sees the process.
type Process struct {
	ID       omis.ProcID
	Info     node.ProcInfo
	Modules  []node.Module
	Memory   []byte
	MemoryAt uint64
	Refuse   error // what Identify answers instead
	Unmapped []uint64
	ReadOnly func(addr uint64) error // asked before each write; may be nil
	Nice     int
	Queues   []node.QueueID // of the process

	node  *Node
	tasks chan func()
	done  chan struct{}

	mu             sync.Mutex
	Threads        []*Thread
	Signals        []int
	BacktraceCalls int
	watches        []*watch
	exited         bool
}

// Thread is a thread of a Process.
type Thread struct {
	TID     int
	Info    node.ThreadInfo
	Frames  []node.Frame
	Stopped bool

	Suspended int
	Ints      [32]uint64
	Floats    [24]float64
	Signals   []int
	Nice      int
	Queue     node.QueueID // 0: none of its own
	Released  bool         // the node has let go of it
}

type watch struct {
	node.Watch
	handle func(*node.Hit)
}

// Add makes a process with threads.
func (n *Node) Add(pid int, argv []string, tids ...int) *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &Process{
		ID: omis.ProcID{PID: pid, Start: uint64(n.Now())}, Info: node.ProcInfo{Argv: argv},
		node: n, tasks: make(chan func()), done: make(chan struct{}),
	}
	for _, tid := range tids {
		p.Threads = append(p.Threads, &Thread{TID: tid})
	}
	n.procs[pid] = p
	go p.own()
	return p
}

// Process finds a process that runs.
func (n *Node) Process(pid int) *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.procs[pid]
}

// own is the goroutine that owns the process.
func (p *Process) own() {
	for {
		select {
		case task := <-p.tasks:
			task()
		case <-p.done:
			return
		}
	}
}

// close ends the owner.
func (p *Process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		p.exited = true
		close(p.done)
	}
}

// do runs a function on the owner and waits for it.
func (p *Process) do(f func()) {
	finished := make(chan struct{})
	select {
	case p.tasks <- func() { f(); close(finished) }:
		<-finished
	case <-p.done:
	}
}

func (p *Process) thread(tid int) (*Thread, error) {
	for _, t := range p.Threads {
		if t.TID == tid {
			return t, nil
		}
	}
	return nil, omis.Errorf(omis.UnknownObject, "process %d has no thread %d", p.ID.PID, tid)
}

// Watch looks out on the process's owner.
func (n *Node) Watch(w node.Watch, handle func(*node.Hit)) (func() error, error) {
	p, err := n.called("Watch", w.Proc)
	if err == nil {
		err = n.CanDetect(w.Event)
	}
	if err != nil {
		return nil, err
	}
	if w.Event == node.EventReachedAddr && slices.Contains(p.Unmapped, w.Addr) {
		return nil, omis.Errorf(omis.ParameterError, "cannot set a breakpoint at %#x: nothing is mapped there", w.Addr)
	}
	n.mu.Lock()
	n.planted = append(n.planted, w)
	n.mu.Unlock()
	entry := &watch{w, handle}
	p.do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watches = append(p.watches, entry)
	})
	return func() error {
		p.do(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.watches = slices.DeleteFunc(p.watches, func(other *watch) bool { return other == entry })
		})
		return nil
	}, nil
}

// Watches counts what is looked out for now, the end of the process left out.
func (p *Process) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, w := range p.watches {
		if w.Event != node.EventProcTerminated {
			n++
		}
	}
	return n
}

// StoppedThreads lists the threads that are stopped.
func (p *Process) StoppedThreads() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tids []int
	for _, t := range p.Threads {
		if t.Stopped {
			tids = append(tids, t.TID)
		}
	}
	return tids
}

// Suspended is how often a thread is.
func (p *Process) Suspended(tid int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.thread(tid)
	if err != nil {
		return 0
	}
	return t.Suspended
}

// Hit makes an event happen. It returns when the handlers have been called; the
// channel is closed when the thread may go on.
func (p *Process) Hit(event node.EventKind, hit node.Hit) (released <-chan struct{}) {
	return p.hit(event, hit, func(*watch) bool { return true })
}

func (p *Process) hit(event node.EventKind, hit node.Hit, also func(*watch) bool) <-chan struct{} {
	var holders sync.WaitGroup
	hit.Proc, hit.Now = p.ID, p.node.Now
	if hit.Time == 0 {
		hit.Time = p.node.Now()
	}
	hit.Hold = func() func() {
		holders.Add(1)
		return sync.OnceFunc(holders.Done)
	}
	p.do(func() {
		p.mu.Lock()
		list := slices.Clone(p.watches)
		p.mu.Unlock()
		for _, w := range list {
			if w.Event == event && w.sees(&hit) && also(w) {
				w.handle(&hit)
			}
		}
	})
	done := make(chan struct{})
	go func() {
		holders.Wait()
		close(done)
	}()
	return done
}

// sees tells whether an occurrence is what the watch looks out for.
func (w *watch) sees(hit *node.Hit) bool {
	switch w.Event {
	case node.EventReachedAddr:
		return w.Addr == hit.Addr
	case node.EventSignal:
		return len(w.Signals) == 0 || slices.Contains(w.Signals, hit.Signal)
	case node.EventTaggedMessage:
		tag := int(hit.Message.Tag)
		return tag != 0 && (len(w.Signals) == 0 || slices.Contains(w.Signals, tag))
	}
	return len(w.Threads) == 0 || slices.Contains(w.Threads, hit.TID)
}

// Call lets a thread call a function of a library and return from it, and waits
// until it may go on each time.
func (p *Process) Call(tid int, name string, result omis.Value, args ...omis.Value) {
	<-p.callHit(node.EventLibCallStarted, tid, name, args)
	<-p.callHit(node.EventLibCallEnded, tid, name, append([]omis.Value{result}, args...))
}

// SysCall is Call for a system call.
func (p *Process) SysCall(tid int, name string, result omis.Value, args ...omis.Value) {
	<-p.callHit(node.EventSysCallStarted, tid, name, args)
	<-p.callHit(node.EventSysCallEnded, tid, name, append([]omis.Value{result}, args...))
}

// callHit makes an event happen for those who look out for a call of that name, or
// of any.
func (p *Process) callHit(event node.EventKind, tid int, name string, params []omis.Value) <-chan struct{} {
	return p.hit(event, node.Hit{TID: tid, Params: params, Held: node.HeldByPtrace}, func(w *watch) bool {
		return w.Name == name || w.Name == ""
	})
}

// change does something to threads, none meaning all, and returns those for which
// it returned true.
func (p *Process) change(tids []int, do func(*Thread) bool) (changed []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.Threads {
		if (len(tids) == 0 || slices.Contains(tids, t.TID)) && do(t) {
			changed = append(changed, t.TID)
		}
	}
	return changed
}

// Reach lets a thread reach an address and waits until it may go on.
func (p *Process) Reach(tid int, addr, sp uint64) {
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: tid, Addr: addr, SP: sp, Held: node.HeldByPtrace})
}

// ReachWith is Reach where registers have arguments.
func (p *Process) ReachWith(tid int, addr uint64, args node.Args) {
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: tid, Addr: addr, Args: args, Held: node.HeldByPtrace})
}

// Spawn adds a thread, made by another one.
func (p *Process) Spawn(by, tid int) {
	p.mu.Lock()
	p.Threads = append(p.Threads, &Thread{TID: tid})
	p.mu.Unlock()
	<-p.Hit(node.EventThreadCreated, node.Hit{TID: by, Child: tid})
}

// Fork makes a process with one thread, by a thread of this one, and tells of both.
func (p *Process) Fork(by, pid int) *Process {
	child := p.node.Add(pid, p.Info.Argv, pid)
	<-p.Hit(node.EventProcCreated, node.Hit{TID: by, Child: pid})
	<-p.Hit(node.EventThreadCreated, node.Hit{TID: by, Child: pid, ChildProc: pid})
	return child
}

// EndThread ends a thread.
func (p *Process) EndThread(tid int) {
	p.mu.Lock()
	p.Threads = slices.DeleteFunc(p.Threads, func(t *Thread) bool { return t.TID == tid })
	p.mu.Unlock()
	<-p.Hit(node.EventThreadTerminated, node.Hit{TID: tid})
}

// End ends the process and waits until everybody who was told has acted.
func (p *Process) End() {
	p.node.mu.Lock()
	delete(p.node.procs, p.ID.PID)
	p.node.mu.Unlock()
	<-p.Hit(node.EventProcTerminated, node.Hit{})
	p.close()
}
