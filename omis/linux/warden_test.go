//go:build linux && amd64

package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestKilledWarden kills the wardens of a monitor, one after the other, and then the monitor. The last warden
// restores all code.
func TestKilledWarden(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "100000")
	g := start(t, hammer, "4", "100000")
	monitor := startMonitor(t, g, "plant")
	monitor.Line()
	former := 0
	for range 5 {
		former = awaitWarden(t, monitor.PID, former)
		unix.Kill(former, unix.SIGKILL)
	}
	if memory, file := text(t, g); string(memory) == string(file) {
		t.Error("the death of a warden has removed the breakpoint")
	}
	last := awaitWarden(t, monitor.PID, former)
	asleep := 0
	eventually(t, "the new warden receives the breakpoints", func() bool {
		if asleep++; !holdsMemoryOf(last, g.ID.PID) || !sleeps(t, monitor.PID) {
			asleep = 0
		}
		return asleep == 20
	})
	monitor.Kill()
	awaitRestored(t, g)
	g.Begin()
	if got := g.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// sleeps reports whether all threads of a process sleep. A monitor whose threads sleep has sent its warden
// everything.
func sleeps(t *testing.T, pid int) bool {
	t.Helper()
	tids, err := proc.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(tids, func(tid int) bool {
		state, err := proc.ThreadState(pid, tid)
		return err == nil && state != "S"
	})
}

// holdsMemoryOf reports whether a warden has opened the memory of a process.
func holdsMemoryOf(warden, pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", warden))
	return slices.ContainsFunc(files, func(file string) bool {
		to, _ := os.Readlink(file)
		return to == memoryPath(pid)
	})
}

// awaitWarden waits until a monitor has a warden other than the former one, and returns its pid.
func awaitWarden(t *testing.T, monitor, former int) int {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", monitor))
		for _, task := range tasks {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", monitor, task.Name()))
			for _, child := range strings.Fields(string(children)) {
				name, _ := os.ReadFile("/proc/" + child + "/comm")
				if pid, _ := strconv.Atoi(child); pid != former && string(name) == "mirador-warden\n" {
					return pid
				}
			}
		}
	}
	t.Fatal("the monitor has no warden")
	return 0
}

// TestStoppedWarden checks that a stopped warden does not block its monitor, and removes no breakpoint when it
// continues.
func TestStoppedWarden(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", "1000")
	var code [relocate.MaxLen]byte
	if _, err := n.ReadMemory(g.ID, g.Addr, code[:]); err != nil {
		t.Fatal(err)
	}
	first := detour.LandingPad
	if !detour.IsLandingPad(code[:]) {
		inst, err := detour.Decode(code[:])
		if err != nil {
			t.Fatal(err)
		}
		first = inst.Len
	}
	_, cancel := watchWork(t, n, g)
	warden := n.warden.PID()
	unix.Kill(warden, unix.SIGSTOP)
	for range 600 { // more messages than a socket holds
		if _, again := watchWork(t, n, g); again() != nil {
			t.Fatal("cannot remove a watch")
		}
		at := g.Addr + uint64(first)
		second, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: at}, func(*node.Hit) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := second(); err != nil {
			t.Fatal(err)
		}
		if n.warden.PID() != warden {
			break
		}
	}
	if n.warden.PID() == warden {
		t.Error("the monitor has not replaced a stopped warden")
	}
	unix.Kill(warden, unix.SIGCONT)
	time.Sleep(50 * time.Millisecond)
	if memory, file := text(t, g); string(memory) == string(file) {
		t.Error("the stopped warden removed the breakpoint")
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}

// TestSparesItself checks that the node refuses the monitor, its threads and its warden as targets.
func TestSparesItself(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "1", "10")
	watchWork(t, n, g) // starts the warden
	_, err := n.Identify(os.Getpid())
	wantError(t, err, omis.ParameterError, "the monitor itself")
	_, err = n.Identify(n.warden.PID())
	wantError(t, err, omis.ParameterError, "the warden")
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, _ := strconv.Atoi(task.Name()); tid != os.Getpid() {
			_, err = n.Identify(tid)
			wantError(t, err, omis.UnknownObject, fmt.Sprintf("a thread of process %d", os.Getpid()))
		}
	}
}
