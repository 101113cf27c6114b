//go:build linux && amd64

package linux

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/node"
)

// exits are the watches on the ends of processes: a pidfd becomes readable when
// the last thread is gone. They trace nobody.
type exits struct {
	mu      sync.Mutex
	waiting map[*exit]struct{}
	running sync.WaitGroup
}

type exit struct {
	fd *os.File

	mu        sync.Mutex // held while the handler runs
	cancelled bool
}

// watchExit calls the handler once, when the process ends.
func (n *Node) watchExit(w *watch) (cancel func() error, err error) {
	fd, err := openProcess(w.Proc)
	if err != nil {
		return nil, err
	}
	e := &exit{fd: os.NewFile(uintptr(fd), "pidfd")}
	n.exits.add(e)
	go func() {
		defer n.exits.remove(e)
		if e.wait() {
			n.settled(w.Proc)
			n.reader.Forget(w.Proc)
			e.tell(n, w)
		}
	}()
	return func() error { e.cancel(); return nil }, nil
}

// wait blocks, without a thread, until the process has ended; false: cancelled.
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

// settled returns when the process's owner, if it has one, has told all that
// happened before the end.
func (n *Node) settled(p omis.ProcID) {
	o := n.owner(p)
	if o == nil {
		return
	}
	c := catchUp{newAnswer()}
	if o.box.post(c) {
		<-c.done
	}
}

// catchUp is answered when the owner has heard all the kernel had to tell.
type catchUp struct{ *answer }

func (c catchUp) do(o *owner) {
	o.drain()
	c.give(nil)
}

func (e *exit) tell(n *Node, w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancelled {
		return
	}
	w.handle(&node.Hit{Proc: w.Proc, TID: w.Proc.PID, Time: n.Now(), Now: n.Now, Hold: holdNothing})
}

func (e *exit) cancel() {
	e.fd.Close()
	e.mu.Lock()
	e.cancelled = true
	e.mu.Unlock()
}

func (x *exits) add(e *exit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting == nil {
		x.waiting = make(map[*exit]struct{})
	}
	x.waiting[e] = struct{}{}
	x.running.Add(1)
}

func (x *exits) remove(e *exit) {
	e.fd.Close()
	x.mu.Lock()
	delete(x.waiting, e)
	x.mu.Unlock()
	x.running.Done()
}

// close cancels all watches and waits for their goroutines.
func (x *exits) close() {
	x.mu.Lock()
	for e := range x.waiting {
		e.fd.Close()
	}
	x.mu.Unlock()
	x.running.Wait()
}
