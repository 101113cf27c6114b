//go:build linux

package precedence

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

func TestPrecedence(t *testing.T) {
	onThread(func(tid int) {
		const nice = 3
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: nice}, 0); err != nil {
			t.Error(err)
			return
		}
		var p Thread
		p.Bind()
		for range 2 { // the second one begins before the policy is restored
			p.Begin()
			if got, _ := policy(t, tid); got != unix.SCHED_FIFO {
				t.Errorf("the policy is %d", got)
			}
			p.End()
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if got, n := policy(t, tid); got == unix.SCHED_BATCH && n == nice {
				break
			}
			if time.Now().After(deadline) {
				t.Error("the policy is not restored")
				break
			}
		}
		p.Begin()
		p.StepBack()
		if got, n := policy(t, tid); got != unix.SCHED_BATCH || n != nice {
			t.Errorf("StepBack restored the policy %d, nice %d", got, n)
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
		var p Thread
		p.Bind()
		p.Begin()
		if got, _ := policy(t, tid); got != unix.SCHED_NORMAL {
			t.Errorf("the policy is %d", got)
		}
		p.End()
	})
}
