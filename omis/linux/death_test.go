//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// monitorPatience is the time that held threads wait for a monitor of startMonitor that does nothing.
const monitorPatience = time.Second

// monitorEnv is an environment variable that makes the test binary a monitor of a process. Its value is
// PID ADDRESS plant|churn|hold|stop|suspend|birth|end|patch|repatch|event-KIND[=NAME] [nowarden] [ptrace], or
// PID ADDRESS checkpoint CRIU FOLDER. With "ptrace" the monitor sets breakpoints instead of jumps.
const monitorEnv = "MIRADOR_TEST_MONITOR"

// runMonitor watches an address of a process until it is killed. The words of monitorEnv change that:
//
//   - churn: it sets and cancels the watch without end.
//   - hold: it holds threads for a short time.
//   - event: it watches an event instead, and holds the threads at signals, at the creation of threads,
//     and at some system calls.
//   - stop, suspend: it also stops or suspends the process.
//   - birth: it watches the address in new processes too.
//   - end: it holds the process at its exit.
//   - patch, repatch: see runPatcher.
//   - checkpoint: it also saves the process without end.
func runMonitor(spec string) {
	f := strings.Fields(spec)
	pid, _ := strconv.Atoi(f[0])
	addr, _ := strconv.ParseUint(f[1], 0, 64)
	c := Config{Name: "doomed", Warden: testWarden(), Patience: monitorPatience}
	if f[2] == "checkpoint" {
		c.CRIU, c.Checkpoints = f[3], f[4]
	}
	if slices.Contains(f, "nowarden") {
		c.Warden = nil
	}
	c.Ptrace = slices.Contains(f, "ptrace")
	n, err := Open(c)
	fail := func(err error) {
		if err != nil && !isEnded(err) {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	fail(err)
	p, err := n.Identify(pid)
	fail(err)
	if f[2] == "checkpoint" {
		_, err := n.checkpoints.criu() // try CRIU first, because the test kills later checkpoints, not this trial
		fail(err)
	}
	fmt.Println("ready")
	var kind node.EventKind
	switch {
	case f[2] == "stop" || f[2] == "suspend":
		_, err = n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: p, Addr: addr}, func(h *node.Hit) {})
		fail(err)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if f[2] == "stop" {
			fail(n.Stop(p, nil))
		} else {
			fail(n.Suspend(p, nil))
		}
		fmt.Println("stopped")
		select {}
	case f[2] == "end":
		_, err = n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: p, Hold: true}, func(h *node.Hit) {
			h.Hold()
			fmt.Println("held")
		})
		fail(err)
		fmt.Println("watching")
		select {}
	case strings.HasSuffix(f[2], "patch"):
		fail(runPatcher(n, p, addr, f[2] == "repatch"))
	case f[2] == "birth":
		w := node.Watch{Event: node.EventReachedAddr, Proc: p, Addr: addr}
		_, err = n.Watch(w, func(*node.Hit) {})
		fail(err)
		// An address means nothing in another program.
		fail(followBirths(n, p, w, func(*node.Hit) {}, func(error) {}))
		fmt.Println("watching")
		select {}
	case f[2] == "checkpoint":
		_, err = n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: p, Addr: addr}, func(h *node.Hit) {})
		fail(err)
		for {
			fail(n.Checkpoint([]omis.ProcID{p}, "doomed"))
			fmt.Println("saved")
		}
	case strings.HasPrefix(f[2], "event-"):
		fmt.Sscanf(f[2], "event-%d", &kind)
		name := eventNames[kind]
		if _, given, ok := strings.Cut(f[2], "="); ok {
			name = given
		}
		_, err = n.Watch(node.Watch{Event: kind, Proc: p, Name: name}, func(h *node.Hit) {
			switch {
			case kind == node.EventSignal || kind == node.EventThreadCreated:
				h.Hold()
			case isSystemCall(kind) && rand.IntN(100) == 0:
				h.Hold()
			}
		})
		fail(err)
		fmt.Println("watching")
		select {}
	}
	handle := func(h *node.Hit) {}
	if f[2] == "hold" {
		handle = func(h *node.Hit) {
			if rand.IntN(2) == 0 {
				time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, h.Hold())
			}
		}
	}
	for {
		cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: p, Addr: addr}, handle)
		fail(err)
		if f[2] == "plant" || f[2] == "hold" {
			fmt.Println("planted")
			select {}
		}
		if err == nil {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			fail(cancel())
		}
	}
}

// eventNames has the default NAME of events in monitorEnv.
var eventNames = map[node.EventKind]string{node.EventLibCallStarted: "strtol", node.EventLibCallEnded: "strtol"}

// startMonitor starts a monitor of a target in another process, and waits until it is ready.
func startMonitor(t *testing.T, g *target, mode string) *subject.Subject {
	t.Helper()
	return subject.StartAgain(t, fmt.Sprintf("%s=%d %#x %s", monitorEnv, g.PID, g.Addr, mode))
}

// leaveMonitor starts a monitor and kills it as soon as it has written that it watches the target.
func leaveMonitor(t *testing.T, g *target, mode string) {
	t.Helper()
	monitor := startMonitor(t, g, mode)
	monitor.Line()
	monitor.Kill()
}

// outlive makes a target begin its work when a monitor watches it, and kills the monitor after a while.
func outlive(t *testing.T, g *target, mode string, while time.Duration) {
	t.Helper()
	monitor := startMonitor(t, g, mode)
	monitor.Line()
	g.Begin()
	time.Sleep(while)
	monitor.Kill()
}

// TestKilledMonitor kills monitors at random moments and checks that the target's result does not change.
func TestKilledMonitor(t *testing.T) {
	hammer := build(t, "hammer.c")
	for _, mode := range []string{"plant", "churn", "hold", "plant nowarden", "churn nowarden", "hold nowarden"} {
		t.Run(mode, func(t *testing.T) {
			args := []string{"4", "3000000"}
			if strings.HasSuffix(mode, "nowarden") {
				args[1] = "50000" // each call raises a signal after the kill
			}
			want := subject.Alone(t, hammer, args...)
			for i := range 6 {
				g := start(t, hammer, args...)
				monitor := startMonitor(t, g, mode)
				if !strings.HasPrefix(mode, "churn") && i%2 == 0 {
					monitor.Line()
				}
				g.Begin()
				time.Sleep(time.Duration(rand.IntN(20000)) * time.Microsecond)
				monitor.Kill()
				if !strings.HasSuffix(mode, "nowarden") {
					awaitRestored(t, g)
				}
				if got := g.Finish(); got != want {
					t.Fatalf("round %d: got %s, want %s", i, got, want)
				}
			}
		})
	}
}

func awaitRestored(t *testing.T, g *target) {
	t.Helper()
	deadline := time.Now().Add(patienceOfTests)
	for {
		memory, file := text(t, g)
		if string(memory) == string(file) {
			return
		}
		if time.Now().After(deadline) {
			at := 0
			for memory[at] == file[at] {
				at++
			}
			t.Fatalf("the warden has not restored the code: it is % x, want % x", memory[at:at+8], file[at:at+8])
		}
		time.Sleep(5 * time.Millisecond)
	}
}
