//go:build linux && amd64

package linux

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestRecycledPid checks that requests for an ended process do not affect a new process with the same pid.
func TestRecycledPid(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	former, g := recycle(t, n, hammer)
	g.Begin()
	if id, err := n.Identify(g.ID.PID); err != nil || id == former || id.PID != former.PID {
		t.Errorf("%+v after %+v, %v", id, former, err)
	}
	_, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: former, Addr: g.Addr}, func(*node.Hit) {})
	requests := map[string]error{"watch": err}
	requests["stop"] = n.Stop(former, nil)
	requests["continue"] = n.Continue(former, nil)
	requests["suspend"] = n.Suspend(former, nil)
	requests["signal"] = n.Signal(former, int(unix.SIGKILL))
	requests["signal to a thread"] = n.SignalThread(former, former.PID, int(unix.SIGKILL))
	requests["priority"] = n.SetPriority(former, 5)
	requests["write"] = n.WriteMemory(former, g.Addr, []byte{0xcc})
	requests["goto"] = n.Goto(former, former.PID, 0)
	_, requests["read"] = n.ReadMemory(former, g.Addr, make([]byte, 8))
	_, requests["registers"] = n.ReadIntRegs(former, former.PID, 0, 1)
	_, requests["stacks"] = n.Backtraces(former, []int{former.PID}, 1)
	_, requests["threads"] = n.Threads(former)
	_, requests["information"] = n.ProcInfo(former, node.ProcParent)
	for what, err := range requests {
		t.Run(what, func(t *testing.T) { wantError(t, err, omis.UnknownObject, "has ended") })
	}
	checkUntouched(t, g)
	awaitState(t, g.ID.PID, "S") // the first thread waits for the others, which run
}

// recycle starts a process with the pid of a process that was watched and has ended. It tries again if another
// program of the machine gets the pid.
func recycle(t *testing.T, n *Node, program string) (former omis.ProcID, g *target) {
	t.Helper()
	for range 100 {
		first := start(t, program, "1", endless)
		first.Begin()
		if _, err := n.Identify(first.ID.PID); err != nil {
			t.Fatal(err)
		}
		watchWork(t, n, first)
		time.Sleep(20 * time.Millisecond) // start times have a resolution of 10 ms
		first.Cmd.Process.Kill()
		first.Cmd.Wait()
		restore := subject.Next(t, first.ID.PID)
		g := start(t, program, "1", endless)
		restore()
		if g.ID.PID == first.ID.PID {
			return first.ID, g
		}
	}
	t.Fatal("no process got a former pid")
	return
}
