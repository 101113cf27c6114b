//go:build linux && amd64

package linux

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// ends lists the ways in which testdata/ends.c ends, each with the number of threads that use 50 ms, the exit
// status, and the signal that ends the process.
var ends = []struct {
	how     string
	threads int
	status  int
	signal  unix.Signal
}{
	{"single", 1, 7, 0},
	{"group", 5, 7, 0},
	{"race", 21, 7, 0},  // a hundred threads use 10 ms, the time of 20 such threads
	{"leader", 3, 7, 0}, // the second thread uses twice as much
	{"turns", 5, 7, 0},
	{"exec", 6, 7, 0},
	{"wait", 5, 0, unix.SIGKILL},
	{"wait", 5, 0, unix.SIGTERM},
}

// startEnding starts testdata/ends.c and returns its child as the target.
func startEnding(t *testing.T, path, how string) *target {
	t.Helper()
	g := start(t, path, how)
	pid, err := strconv.Atoi(g.Line())
	if err != nil {
		t.Fatal(err)
	}
	g.PID = pid
	if g.ID, err = procIdentify(pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Kill(pid, unix.SIGKILL) })
	return g
}

// finish returns the exit status and the CPU time that the parent of a target has received by wait4.
func finish(t *testing.T, g *target) (status unix.WaitStatus, used time.Duration) {
	t.Helper()
	var micros int64
	if line := g.Finish(); line != "" {
		if _, err := fmt.Sscan(line, &status, &micros); err != nil {
			t.Fatal(line, err)
		}
	}
	return status, time.Duration(micros) * time.Microsecond
}

// eachUses is the CPU time of a thread of testdata/ends.c.
const eachUses = 50 * time.Millisecond

// lastLook contains what was read of a process at its exit.
type lastLook struct {
	held    string
	info    node.ProcInfo
	threads []int
	err     error
}

const finalFields = node.ProcTotalTime | node.ProcMemorySize | node.ProcResidentSize | node.ProcMaxResidentSize

// watchEnd holds a process at its exit and sends what it reads there.
func watchEnd(t *testing.T, n *Node, p omis.ProcID) <-chan lastLook {
	t.Helper()
	looks := make(chan lastLook, 2)
	_, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: p, Hold: true}, func(h *node.Hit) {
		release, held := h.Hold(), h.Held
		go func() {
			defer release()
			l := lastLook{held: held}
			if l.info, l.err = n.ProcInfo(p, finalFields); l.err == nil {
				l.threads, l.err = n.Threads(p)
			}
			looks <- l
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	return looks
}

// TestEnds compares what is read of a process at its exit with what its parent receives by wait4.
func TestEnds(t *testing.T) {
	path := build(t, "ends.c")
	for _, e := range ends {
		t.Run(fmt.Sprint(e.how, e.signal), func(t *testing.T) {
			n := openNode(t)
			g := startEnding(t, path, e.how)
			looks := watchEnd(t, n, g.ID)
			g.Begin()
			if e.signal != 0 {
				eventually(t, "the threads wait", func() bool {
					info, err := n.ProcInfo(g.ID, node.ProcTotalTime)
					tids, _ := n.Threads(g.ID)
					return err == nil && len(tids) == e.threads && info.TotalTime > time.Duration(e.threads)*eachUses
				})
				unix.Kill(g.PID, e.signal)
			}
			status, used := finish(t, g)
			l := <-looks
			if l.err != nil || l.held != node.HeldByPtrace {
				t.Fatalf("the process was held by %q when it was read: %v", l.held, l.err)
			}
			// The time that the parent receives includes the release of the memory.
			if least := time.Duration(e.threads) * eachUses; l.info.TotalTime < least || l.info.TotalTime > used || used-l.info.TotalTime > 50*time.Millisecond {
				t.Errorf("the CPU time at the exit was %v, the parent received %v", l.info.TotalTime, used)
			}
			const memory = 32 << 20
			if l.info.MemorySize < memory || l.info.ResidentSize < memory || l.info.MaxResidentSize < memory {
				t.Errorf("sizes read at its exit: %+v, want more than 32 MB", l.info)
			}
			if len(l.threads) == 0 {
				t.Error("the process had no thread at its exit")
			}
			if want := e.status<<8 | int(e.signal); int(status) != want {
				t.Errorf("the process ended with %#x, want %#x", status, want)
			}
			select {
			case l := <-looks:
				t.Errorf("the end was reported twice: %+v", l)
			default:
			}
		})
	}
}

// TestEndInCompany holds a process at its exit that has other watches: a breakpoint, system calls, and threads
// that end.
func TestEndInCompany(t *testing.T) {
	path := build(t, "ends.c")
	for _, how := range []string{"group", "race", "leader", "turns"} {
		t.Run(how, func(t *testing.T) {
			n := openNode(t)
			g := startEnding(t, path, how)
			var terminated atomic.Int64
			for _, w := range []node.Watch{
				{Event: node.EventReachedAddr, Addr: g.Addr},
				{Event: node.EventThreadTerminated},
				{Event: node.EventSysCallEnded, Name: "write"},
			} {
				w.Proc = g.ID
				if _, err := n.Watch(w, func(*node.Hit) {
					if w.Event == node.EventThreadTerminated {
						terminated.Add(1)
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			looks := watchEnd(t, n, g.ID)
			ended := make(chan struct{})
			if _, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: g.ID}, func(*node.Hit) { close(ended) }); err != nil {
				t.Fatal(err)
			}
			g.Begin()
			status, _ := finish(t, g)
			if l := <-looks; l.err != nil || l.held == "" {
				t.Errorf("the process was held by %q: %v", l.held, l.err)
			}
			<-ended
			if status.ExitStatus() != 7 || terminated.Load() < 2 {
				t.Errorf("the process ended with %#x, %d threads terminated before", status, terminated.Load())
			}
		})
	}
}

// TestEndOfStopped checks that a process that the monitor has stopped or suspended can be killed.
func TestEndOfStopped(t *testing.T) {
	n := openNode(t)
	for name, stop := range map[string]func(omis.ProcID, []int) error{"stopped": n.Stop, "suspended": n.Suspend} {
		g := startEnding(t, build(t, "ends.c"), "group")
		looks := watchEnd(t, n, g.ID)
		if err := stop(g.ID, nil); err != nil {
			t.Fatal(err)
		}
		unix.Kill(g.PID, unix.SIGKILL)
		finish(t, g)
		if l := <-looks; l.err != nil || l.held == "" {
			t.Errorf("%s: the process was held by %q: %v", name, l.held, l.err)
		}
	}
}

// TestAtEnd checks that requests that a thread at its exit cannot execute are refused without a delay.
func TestAtEnd(t *testing.T) {
	n := openNode(t)
	g := startEnding(t, build(t, "ends.c"), "single")
	type result struct {
		took time.Duration
		errs map[string]error
	}
	results := make(chan result, 1)
	if _, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: g.ID, Hold: true}, func(h *node.Hit) {
		release := h.Hold()
		go func() {
			defer release()
			begin := time.Now()
			_, trap := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
			errs := map[string]error{
				"breakpoint": trap, "call": n.Call(g.ID, g.PID, g.Addr), "goto": n.Goto(g.ID, g.PID, g.Addr),
			}
			_, patch := n.Ground(g.ID)
			errs["patch"] = patch
			took := time.Since(begin)
			if _, err := n.ReadIntRegs(g.ID, g.PID, 0, intRegs); err != nil {
				t.Errorf("registers: %v", err)
			}
			if traces, err := n.Backtraces(g.ID, []int{g.PID}, 0); err != nil || traces[0].Err != nil || len(traces[0].Frames) < 2 {
				t.Errorf("stack: %v, %v", traces, err)
			}
			results <- result{took, errs}
		}()
	}); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	status, _ := finish(t, g)
	r := <-results
	for what, err := range r.errs {
		if err == nil || !strings.Contains(err.Error(), "is at its end") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if r.took > time.Second {
		t.Errorf("the refusals took %v", r.took)
	}
	if status.ExitStatus() != 7 {
		t.Errorf("the process ended with %#x", status)
	}
}

// TestEndCancelled cancels the watch while the process is held: the process remains held until the handler
// releases it, and then ends.
func TestEndCancelled(t *testing.T) {
	n := openNode(t)
	g := startEnding(t, build(t, "ends.c"), "group")
	held := make(chan func(), 1)
	cancel, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: g.ID, Hold: true}, func(h *node.Hit) { held <- h.Hold() })
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	release := <-held
	if err := cancel(); err != nil {
		t.Error(err)
	}
	if s := stateOf(t, g.PID); s == "Z" {
		t.Error("the process ended before the handler released it")
	}
	release()
	status, _ := finish(t, g)
	if status.ExitStatus() != 7 {
		t.Errorf("the process ended with %#x", status)
	}
}

// TestEndKilled kills the monitor while it holds a process at its exit, and checks that the process ends with the
// right status.
func TestEndKilled(t *testing.T) {
	path := build(t, "ends.c")
	for _, e := range ends {
		t.Run(fmt.Sprint(e.how, e.signal), func(t *testing.T) {
			g := startEnding(t, path, e.how)
			monitor := startMonitor(t, g, "end")
			monitor.Line()
			g.Begin()
			if e.signal != 0 {
				time.Sleep(50 * time.Millisecond)
				unix.Kill(g.PID, e.signal)
			}
			if line := monitor.Line(); line != "held" {
				t.Fatal(line)
			}
			if s := stateOf(t, g.PID); s != "t" && e.how != "leader" {
				t.Errorf("the first thread of the held process is in state %s", s)
			}
			monitor.Kill()
			status, _ := finish(t, g)
			if want := e.status<<8 | int(e.signal); int(status) != want {
				t.Errorf("the process ended with %#x, want %#x", status, want)
			}
		})
	}
}

func stateOf(t *testing.T, pid int) string {
	t.Helper()
	s, err := proc.ThreadState(pid, pid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEndUnheld checks the error for a process that cannot be held because gdb traces it.
func TestEndUnheld(t *testing.T) {
	n := openNode(t)
	g := startEnding(t, build(t, "ends.c"), "wait")
	gdb := exec.Command("gdb", "-q", "-nx", "-p", fmt.Sprint(g.PID), "-ex", "echo attached\\n")
	in, _ := gdb.StdinPipe()
	if err := gdb.Start(); err != nil {
		t.Fatal(err)
	}
	defer gdb.Wait()
	defer in.Close()
	eventually(t, "gdb traces the process", func() bool {
		s, err := proc.ReadStatus(g.PID)
		return err == nil && s.Tracer != 0
	})
	_, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: g.ID, Hold: true}, func(*node.Hit) {})
	if err == nil || !strings.Contains(err.Error(), "traced by gdb") {
		t.Errorf("%v", err)
	}
}
