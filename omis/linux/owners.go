//go:build linux && amd64

package linux

import (
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// owners is the table of a node's owners and of the processes that are just created. Its
// methods may be called from any goroutine.
type owners struct {
	n       *Node
	running sync.WaitGroup // the owners' goroutines

	mu     sync.Mutex
	byProc map[omis.ProcID]*owner
	births map[int]*birth // by the pids of the children
	closed bool
}

// of returns the owner of a process, nil if the process has none.
func (w *owners) of(p omis.ProcID) *owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byProc[p]
}

// among returns the owners of processes in any of the trees.
func (w *owners) among(trees []familyTree) []*owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*owner
	for p, o := range w.byProc {
		if slices.ContainsFunc(trees, func(t familyTree) bool { return slices.Contains(t.members, p.PID) }) {
			list = append(list, o)
		}
	}
	return list
}

// ask sends a task to the owner of a process, and waits for the answer.
func (w *owners) ask(p omis.ProcID, t task) error {
	if err := proc.Alive(p); err != nil {
		return err
	}
	for {
		o, err := w.engage(p)
		if err != nil {
			return err
		}
		if a, posted := o.box.ask(t); posted {
			return a.wait()
		}
	}
}

// engage returns the owner of a process, and starts one if there is none.
func (w *owners) engage(p omis.ProcID) (*owner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed()
	}
	o := w.byProc[p]
	if o == nil {
		o = newOwner(w.n, p)
		w.byProc[p] = o
		if b := w.births[p.PID]; b != nil {
			o.box.post(&inherit{answer: newAnswer(), from: b, taker: o})
		}
		w.start(o)
	}
	return o, nil
}

// launch starts an owner whose process does not exist yet; the task creates it.
func (w *owners) launch(first task) (*owner, *answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, nil, errClosed()
	}
	o := newOwner(w.n, omis.ProcID{})
	a, _ := o.box.ask(first)
	w.start(o)
	return o, a, nil
}

func (w *owners) start(o *owner) {
	w.running.Add(1)
	go onOwnThread(o.run)
}

// enter adds an owner whose process exists by now.
func (w *owners) enter(o *owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byProc[o.proc] = o
}

// retire removes an idle owner, unless a command has come in.
func (w *owners) retire(o *owner) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !o.box.close() {
		return false
	}
	if w.byProc[o.proc] == o {
		delete(w.byProc, o.proc)
	}
	return true
}

// expect adds a process that is just being created.
func (w *owners) expect(b *birth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.births[b.child.pid] = b
}

// born removes a process whose creation is over.
func (w *owners) born(b *birth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.births[b.child.pid] == b {
		delete(w.births, b.child.pid)
	}
}

// close ends all owners, and admits no further ones.
func (w *owners) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, o := range w.byProc {
		o.box.post(closeOwner{})
	}
}

// onOwnThread calls a function on an OS thread that ends with the function: the kernel then
// detaches what is still attached. Go never ends the first thread of a program. If the
// goroutine is on that thread it stays locked to it until another goroutine has another
// thread.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	begun := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(begun)
		f()
	}()
	<-begun
	runtime.UnlockOSThread()
}

func errClosed() error { return omis.Errorf(omis.UnspecifiedError, "the monitor is shutting down") }

// closeOwner is the command to an owner to release everything and end.
type closeOwner struct{}

func (closeOwner) do(o *owner) {
	o.releaseAll()
	o.closing = true
}
