package fake

import (
	"slices"
	"sync"

	"mirador/omis"
)

// Process is a process of the fake. What a test sets, it sets before the engine
// sees the process.
type Process struct {
	ID       omis.ProcID
	Info     omis.ProcInfo
	Modules  []omis.Module
	Memory   []byte
	MemoryAt uint64
	Refuse   error // what Identify answers instead
	Unmapped []uint64

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
	Info    omis.ThreadInfo
	Frames  []omis.Frame
	Stopped bool
}

type watch struct {
	omis.Watch
	handle func(*omis.Hit)
}

// Add makes a process with threads.
func (n *Node) Add(pid int, argv []string, tids ...int) *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &Process{
		ID: omis.ProcID{PID: pid, Start: uint64(n.Now())}, Info: omis.ProcInfo{Argv: argv},
		node: n, tasks: make(chan func()), done: make(chan struct{}),
	}
	for _, tid := range tids {
		p.Threads = append(p.Threads, &Thread{TID: tid})
	}
	n.procs[pid] = p
	go p.own()
	return p
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
func (n *Node) Watch(w omis.Watch, handle func(*omis.Hit)) (func() error, error) {
	p, err := n.byID(w.Proc)
	if err != nil {
		return nil, err
	}
	if w.Event == omis.EventReachedAddr && slices.Contains(p.Unmapped, w.Addr) {
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
		if w.Event != omis.EventProcTerminated {
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

// Hit makes an event happen. It returns when the handlers have been called; the
// channel is closed when the thread may go on.
func (p *Process) Hit(event omis.EventKind, hit omis.Hit) (released <-chan struct{}) {
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
			if w.Event == event && (event != omis.EventReachedAddr || w.Addr == hit.Addr) {
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

// Reach lets a thread reach an address and waits until it may go on.
func (p *Process) Reach(tid int, addr, sp uint64) {
	<-p.Hit(omis.EventReachedAddr, omis.Hit{TID: tid, Addr: addr, SP: sp})
}

// Spawn adds a thread, made by another one.
func (p *Process) Spawn(by, tid int) {
	p.mu.Lock()
	p.Threads = append(p.Threads, &Thread{TID: tid})
	p.mu.Unlock()
	<-p.Hit(omis.EventThreadCreated, omis.Hit{TID: by, Child: tid})
}

// EndThread ends a thread.
func (p *Process) EndThread(tid int) {
	p.mu.Lock()
	p.Threads = slices.DeleteFunc(p.Threads, func(t *Thread) bool { return t.TID == tid })
	p.mu.Unlock()
	<-p.Hit(omis.EventThreadTerminated, omis.Hit{TID: tid})
}

// End ends the process and waits until everybody who was told has acted.
func (p *Process) End() {
	p.node.mu.Lock()
	delete(p.node.procs, p.ID.PID)
	p.node.mu.Unlock()
	<-p.Hit(omis.EventProcTerminated, omis.Hit{})
	p.close()
}
