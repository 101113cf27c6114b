//go:build linux && amd64

package linux

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/node"
)

// policy returns the scheduling policy and the nice value of a thread.
func policy(t *testing.T, tid int) (int, int) {
	t.Helper()
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return int(a.Policy), int(a.Nice)
}

// onThread runs a function on a new OS thread, which ends with the function.
func onThread(do func(tid int)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		do(unix.Gettid())
	}()
	<-done
}

// until waits for a condition and reports an error if it is not true within patienceOfTests.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("never: " + what)
			return
		}
	}
}

func TestPrecedence(t *testing.T) {
	onThread(func(tid int) {
		const nice = 3
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: nice}, 0); err != nil {
			t.Error(err)
			return
		}
		p := &precedence{thread: tid}
		for range 2 { // the second one begins before the policy is restored
			p.begin()
			if got, _ := policy(t, tid); got != unix.SCHED_FIFO {
				t.Errorf("the policy is %d", got)
			}
			p.end()
		}
		until(t, "the policy is restored", func() bool { got, n := policy(t, tid); return got == unix.SCHED_BATCH && n == nice })
		p.begin()
		p.stepBack()
		if got, n := policy(t, tid); got != unix.SCHED_BATCH || n != nice {
			t.Errorf("stepBack restored the policy %d, nice %d", got, n)
		}
	})
}

// TestPrecedenceRefused checks a thread without CAP_SYS_NICE, whose policy cannot change.
func TestPrecedenceRefused(t *testing.T) {
	onThread(func(tid int) {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			t.Error(err)
			return
		}
		data[0].Effective &^= 1 << unix.CAP_SYS_NICE
		if err := unix.Capset(&header, &data[0]); err != nil {
			t.Error(err)
			return
		}
		p := &precedence{thread: tid}
		p.begin()
		if got, _ := policy(t, tid); got != unix.SCHED_NORMAL {
			t.Errorf("the policy is %d", got)
		}
		p.end()
	})
}

// TestStepsBack checks that an owner restores its scheduling policy after it has continued threads.
func TestStepsBack(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "4", endless)
	g.Begin()
	cancel, err := n.Watch(node.Watch{Event: node.EventThreadTerminated, Proc: g.ID}, func(*node.Hit) {})
	if err != nil {
		t.Fatal(err)
	}
	owner := int(n.owners.of(g.ID).box.thread.Load())
	for range 20 {
		if err := n.Stop(g.ID, nil); err != nil {
			t.Fatal(err)
		}
		if err := n.Continue(g.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the owner's policy is restored", func() bool { got, _ := policy(t, owner); return got == unix.SCHED_NORMAL })
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}
