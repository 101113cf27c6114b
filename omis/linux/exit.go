//go:build linux && amd64

package linux

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/node"
)

// exits are the watches on the ends of processes. A pidfd becomes readable when the last
// thread of its process has ended; no process is traced for that.
type exits struct {
	n       *Node
	mu      sync.Mutex
	waiting map[omis.ProcID]*exit
	running sync.WaitGroup
}

// exit is a process whose end is watched. A goroutine waits for the end and calls the
// handlers.
type exit struct {
	fd *os.File

	mu      sync.Mutex // held while a handler runs
	watches []*watch
}

// watchExit calls the handler once, when the process has ended.
func (x *exits) watchExit(w *watch) (cancel func() error, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.waiting[w.Proc]
	if e == nil {
		if e, err = x.begin(w.Proc); err != nil {
			return nil, err
		}
		go x.awaitExit(e, w.Proc)
	}
	e.add(w)
	return func() error { x.cancel(e, w); return nil }, nil
}

// watchHeldExit calls the handler once: while the process is held at its exit or, if that
// does not come about, when the process has ended.
func (x *exits) watchHeldExit(w *watch) (cancel func() error, err error) {
	var once sync.Once
	handle := w.handle
	w.handle = func(h *node.Hit) { once.Do(func() { handle(h) }) }
	late := *w // the owner replaces the handler of its own
	forget, err := x.watchExit(&late)
	if err != nil {
		return nil, err
	}
	if err := x.n.owners.ask(w.Proc, setWatch{w}); err != nil {
		_ = forget() // it never fails
		return nil, unlessEnded(w.Proc, err)
	}
	return func() error {
		_ = forget()
		return x.n.unwatch(w)
	}, nil
}

// awaitExit calls the handlers when the process has ended and its owner has reported all
// that happened before.
func (x *exits) awaitExit(e *exit, p omis.ProcID) {
	defer x.running.Done()
	ended := e.wait()
	x.end(e, p)
	if ended {
		x.settled(p)
		x.n.reader.Forget(p)
		e.tell(x.n, p)
	}
}

// begin makes the exit of a process. The caller holds mu.
func (x *exits) begin(p omis.ProcID) (*exit, error) {
	fd, err := openProcess(p)
	if err != nil {
		return nil, err
	}
	if x.waiting == nil {
		x.waiting = make(map[omis.ProcID]*exit)
	}
	e := &exit{fd: os.NewFile(uintptr(fd), "pidfd")}
	x.waiting[p] = e
	x.running.Add(1)
	return e, nil
}

// end takes an exit out of the table: a watch that is set from now on fails, or finds
// another process.
func (x *exits) end(e *exit, p omis.ProcID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e.fd.Close()
	if x.waiting[p] == e {
		delete(x.waiting, p)
	}
}

// cancel takes a watch away, and ends the waiting with the last one.
func (x *exits) cancel(e *exit, w *watch) {
	e.mu.Lock()
	e.watches = slices.DeleteFunc(e.watches, func(other *watch) bool { return other == w })
	e.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.isUnwatched() && x.waiting[w.Proc] == e {
		delete(x.waiting, w.Proc)
		e.fd.Close()
	}
}

// close ends all waiting.
func (x *exits) close() {
	x.mu.Lock()
	for _, e := range x.waiting {
		e.fd.Close()
	}
	x.mu.Unlock()
	x.running.Wait()
}

// add puts a watch behind those that were set before, but a watch with Hold before all watches
// without: the handlers of the latter may forget the process.
func (e *exit) add(w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := len(e.watches)
	if i := slices.IndexFunc(e.watches, func(other *watch) bool { return !other.Hold }); w.Hold && i >= 0 {
		at = i
	}
	e.watches = slices.Insert(e.watches, at, w)
}

func (e *exit) isUnwatched() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.watches) == 0
}

// wait blocks the goroutine, but no OS thread, until the process has ended. It returns
// false if the waiting was cancelled.
func (e *exit) wait() bool {
	conn, err := e.fd.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 1
	})
	return err == nil
}

func (e *exit) tell(n *Node, p omis.ProcID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.watches {
		w.handle(&node.Hit{Proc: p, TID: p.PID, Time: n.Now(), Now: n.Now, Hold: holdNothing})
	}
}

// settled returns when the owner of a process, if there is one, has reported all that
// happened before the end.
func (x *exits) settled(p omis.ProcID) {
	o := x.n.owners.of(p)
	if o == nil {
		return
	}
	if a, posted := o.box.ask(catchUp{}); posted {
		_ = a.wait()
	}
}

// catchUp is answered when the owner has handled all that the kernel reports.
type catchUp struct{}

func (catchUp) do(o *owner) error {
	o.tracer.drain()
	return nil
}
