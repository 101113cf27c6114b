//go:build linux && amd64

package linux

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// owner returns the owner of a process, nil if nothing stands on it.
func (n *Node) owner(p omis.ProcID) *owner {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owners[p]
}

// ask has the process's owner do a command, and waits for its answer.
func (n *Node) ask(p omis.ProcID, c command, a *answer) error {
	if err := proc.Alive(p); err != nil {
		return err
	}
	for {
		o, err := n.engage(p)
		if err != nil {
			return err
		}
		if o.box.post(c) {
			break
		}
	}
	<-a.done
	return a.err
}

// engage finds the owner of a process or sets one to work.
func (n *Node) engage(p omis.ProcID) (*owner, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed()
	}
	o := n.owners[p]
	if o == nil {
		o = newOwner(n, p)
		n.owners[p] = o
		if b := n.births[p.PID]; b != nil {
			o.box.post(&inherit{answer: newAnswer(), from: b, heir: o})
		}
		n.owning.Add(1)
		go onOwnThread(o.run)
	}
	return o, nil
}

// onOwnThread calls a function on an OS thread that ends with it; the kernel then
// lets go whatever might still be attached. Go never ends a program's first
// thread, which must not be the one: while we are locked to it, another
// goroutine is on another.
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

// retire takes an idle owner off the list, unless a command has come in.
func (n *Node) retire(o *owner) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !o.box.close() {
		return false
	}
	if n.owners[o.proc] == o {
		delete(n.owners, o.proc)
	}
	return true
}

func errClosed() error { return omis.Errorf(omis.UnspecifiedError, "the monitor is shutting down") }

// closeOwner has an owner let everything go and end.
type closeOwner struct{}

func (closeOwner) do(o *owner) {
	o.releaseAll()
	o.closing = true
}
