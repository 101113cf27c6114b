package fake

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
)

// Process is a process of the fake. Tests set its fields before the engine uses the process.
type Process struct {
	ID       omis.ProcID
	Info     node.ProcInfo
	Modules  []node.Module
	Memory   []byte
	MemoryAt uint64
	Refuse   error // the error of Identify, and of all other methods
	Unmapped []uint64
	ReadOnly func(addr uint64) error // returns the error of a write at an address; may be nil
	Nice     int
	Queues   []node.QueueID // of the process
	Unheld   error          // what keeps the process from being held at its exit

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
	Queue     node.QueueID // 0: the thread has none
	Released  bool         // LetGo was called
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

// Process returns a running process, nil if there is none with that pid.
func (n *Node) Process(pid int) *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.procs[pid]
}

// own runs on the goroutine that owns the process, and executes its tasks.
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

// close ends the goroutine that owns the process.
func (p *Process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		p.exited = true
		close(p.done)
	}
}

// do runs a function on the goroutine that owns the process, and waits for it.
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

// Watch adds and removes the watch on the goroutine that owns the process.
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
	if w.Hold && p.Unheld != nil {
		return nil, p.Unheld
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

// Watches returns the number of watches for other events than the end of the process.
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

// StoppedThreads returns the numbers of the stopped threads.
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

// Suspended returns the suspend count of a thread.
func (p *Process) Suspended(tid int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.thread(tid)
	if err != nil {
		return 0
	}
	return t.Suspended
}

// Hit makes an event happen. It returns when all handlers have returned. It closes the channel
// when the thread may continue.
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

// sees reports whether the watch detects an occurrence of its kind of event.
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

// Call makes a thread call a library function and return from it. After each of the two events
// it waits until the thread may continue.
func (p *Process) Call(tid int, name string, result omis.Value, args ...omis.Value) {
	<-p.callHit(node.EventLibCallStarted, tid, name, args)
	<-p.callHit(node.EventLibCallEnded, tid, name, append([]omis.Value{result}, args...))
}

// SysCall does the same as Call with a system call.
func (p *Process) SysCall(tid int, name string, result omis.Value, args ...omis.Value) {
	<-p.callHit(node.EventSysCallStarted, tid, name, args)
	<-p.callHit(node.EventSysCallEnded, tid, name, append([]omis.Value{result}, args...))
}

// callHit makes an event happen for the watches of a call by name, and of all calls.
func (p *Process) callHit(event node.EventKind, tid int, name string, params []omis.Value) <-chan struct{} {
	return p.hit(event, node.Hit{TID: tid, Params: params, Held: node.HeldByPtrace}, func(w *watch) bool {
		return w.Name == name || w.Name == ""
	})
}

// change calls do for threads (an empty list means all), and returns the threads for which do
// returned true.
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

// Reach makes a thread reach an address, and waits until the thread may continue.
func (p *Process) Reach(tid int, addr, sp uint64) {
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: tid, Addr: addr, SP: sp, Held: node.HeldByPtrace})
}

// ReachWith does the same as Reach, with arguments in the registers.
func (p *Process) ReachWith(tid int, addr uint64, args node.Args) {
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: tid, Addr: addr, Args: args, Held: node.HeldByPtrace})
}

// Spawn makes a thread create another one.
func (p *Process) Spawn(by, tid int) {
	p.mu.Lock()
	p.Threads = append(p.Threads, &Thread{TID: tid})
	p.mu.Unlock()
	<-p.Hit(node.EventThreadCreated, node.Hit{TID: by, Child: tid})
}

// Fork makes a thread create a process with one thread, and raises the events for both.
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

// End ends the process: it waits for the watches that hold it at its exit, and then until
// all others have acted.
func (p *Process) End() {
	p.end(true)
	p.node.mu.Lock()
	delete(p.node.procs, p.ID.PID)
	p.node.mu.Unlock()
	p.end(false)
	p.close()
}

func (p *Process) end(held bool) {
	hit := node.Hit{}
	if held {
		hit.Held = node.HeldByPtrace
	}
	<-p.hit(node.EventProcTerminated, hit, func(w *watch) bool { return w.Hold == held })
}
