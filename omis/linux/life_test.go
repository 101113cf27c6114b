//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// lives has the number of rounds and of hits for each mode of life.c.
var lives = map[string]struct{ rounds, hits int }{
	"churn":  {4, 800},
	"forks":  {40, 160},
	"exec":   {5, 1}, // breakpoints vanish when the process executes a program
	"leader": {200, 200},
	"tracer": {20, 20},
	"stops":  {100, 200},
}

// TestLives watches targets that are difficult to trace, and checks that their results do not change.
func TestLives(t *testing.T) {
	life := build(t, "life.c")
	for mode, l := range lives {
		t.Run(mode, func(t *testing.T) {
			rounds := fmt.Sprint(l.rounds)
			want := subject.Alone(t, life, mode, rounds)
			n := openNode(t)
			g := start(t, life, mode, rounds)
			hits, cancel := watchWork(t, n, g)
			var created, terminated atomic.Int64
			n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(*node.Hit) { created.Add(1) })
			n.Watch(node.Watch{Event: node.EventThreadTerminated, Proc: g.ID}, func(*node.Hit) { terminated.Add(1) })
			g.Begin()
			if got := g.Line(); got != want || hits.Load() != int64(l.hits) {
				t.Errorf("got %s with %d hits, want %s with %d", got, hits.Load(), want, l.hits)
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
			if err := n.Stop(g.ID, nil); err != nil {
				t.Fatal(err)
			}
			if mode == "churn" && (created.Load() != 800 || terminated.Load() != 800) {
				t.Errorf("%d threads created, %d terminated", created.Load(), terminated.Load())
			}
		})
	}
}

// TestLivesKilled kills the monitor while it watches such targets.
func TestLivesKilled(t *testing.T) {
	life := build(t, "life.c")
	ways := []string{"plant", "churn", fmt.Sprint("event-", int(node.EventStepped)), fmt.Sprint("event-", int(node.EventSysCallEnded))}
	for mode, l := range lives {
		t.Run(mode, func(t *testing.T) {
			rounds := fmt.Sprint(l.rounds)
			want := subject.Alone(t, life, mode, rounds)
			for _, way := range ways {
				g := start(t, life, mode, rounds)
				monitor := startMonitor(t, g, way)
				if way != "churn" {
					monitor.Line()
				}
				g.Begin()
				time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
				monitor.Kill()
				got := g.Line()
				if mode == "tracer" {
					// The target traces children, which may have inherited breakpoints, and sees their
					// signals; compare only its calls.
					got, want = cutBad(got), cutBad(want)
				}
				if got != want {
					t.Errorf("%s: got %s, want %s", way, got, want)
				}
			}
		})
	}
}

func cutBad(line string) string {
	calls, _, _ := strings.Cut(line, " bad")
	return calls
}

// TestStoppedKilled kills monitors that have stopped or suspended a target with breakpoints.
func TestStoppedKilled(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "8", "20000")
	for i, way := range []string{"stop", "suspend", "stop nowarden", "suspend nowarden"} {
		for range 3 {
			g := start(t, hammer, "8", "20000")
			g.Begin()
			monitor := startMonitor(t, g, way)
			monitor.Line()
			time.Sleep(time.Duration(i) * time.Millisecond)
			monitor.Kill()
			if got := g.Finish(); got != want {
				t.Errorf("%s: got %s, want %s", way, got, want)
			}
		}
	}
}

// TestStoppedByOthers mixes SIGSTOP and SIGCONT of other processes with Stop and Continue.
func TestStoppedByOthers(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", endless)
	g.Begin()
	tids, _ := n.Threads(g.ID)
	_, cancel := watchWork(t, n, g)
	for range 3 {
		unix.Kill(g.ID.PID, unix.SIGSTOP)
		eventually(t, "the process stops", func() bool { return !runs(t, n, g.ID, tids[1]) })
		if err := n.Stop(g.ID, nil); err != nil {
			t.Fatal(err)
		}
		if err := n.Continue(g.ID, nil); err != nil {
			t.Fatal(err)
		}
		if runs(t, n, g.ID, tids[1]) {
			t.Error("Continue continued a process that SIGSTOP had stopped")
		}
		unix.Kill(g.ID.PID, unix.SIGCONT)
		if !runs(t, n, g.ID, tids[1]) {
			t.Error("the process does not run after SIGCONT")
		}
	}
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
}

// attachEnv is an environment variable with the number of times that TestAttachAndDetach attaches.
const attachEnv = "MIRADOR_TEST_ATTACH"

// TestAttachAndDetach attaches and detaches many times, and limits the CPU time that this takes.
func TestAttachAndDetach(t *testing.T) {
	const most = 5 * time.Millisecond
	times := 1000
	if more, err := strconv.Atoi(os.Getenv(attachEnv)); err == nil {
		times = more
	}
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", endless)
	g.Begin()
	tids, _ := n.Threads(g.ID)
	begin, used := time.Now(), processorTime(t)
	for range times {
		cancel, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(*node.Hit) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
	}
	each := (processorTime(t) - used) / time.Duration(times)
	t.Logf("%d times, %v each, of which the monitor used %v of CPU time", times, time.Since(begin)/time.Duration(times), each)
	if each > most {
		t.Errorf("attaching and detaching takes %v", each)
	}
	if !runs(t, n, g.ID, tids[1]) {
		t.Error("the target does not run")
	}
	checkUntouched(t, g)
}

// processorTime returns the CPU time of this process. Elapsed time would depend on the machine's load.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Test32Bit checks that a 32-bit program is refused with the reason.
func Test32Bit(t *testing.T) {
	// An ELF file of 32 bits with one segment: mov $29, %eax (pause); int $0x80; jmp to the beginning.
	code := []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}
	const base, head = 0x08048000, 52 + 32
	image := []byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x03\x00\x01\x00\x00\x00" + "\x54\x80\x04\x08" + "\x34\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" +
		"\x34\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x80\x04\x08" + "\x00\x80\x04\x08" + "\x5d\x00\x00\x00" + "\x5d\x00\x00\x00" + "\x05\x00\x00\x00" + "\x00\x10\x00\x00")
	if len(image) != head {
		t.Fatal(len(image), base)
	}
	file := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(file, append(image, code...), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file)
	if err := cmd.Start(); err != nil {
		if strings.Contains(err.Error(), "exec format error") {
			t.Logf("this kernel runs no 32-bit programs: %v", err)
			return
		}
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	n := openNode(t)
	_, err := n.Identify(cmd.Process.Pid)
	wantError(t, err, omis.UnsupportedService, "32-bit")
}
