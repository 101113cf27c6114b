//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/node"
)

// straceCounts returns the numbers of system calls that end in strace's output after the program has read a line.
func straceCounts(t *testing.T, program string) map[string]int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-o", file, program)
	cmd.Stdin = strings.NewReader("\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), `read(0, "\n", 1)`)
	counts := make(map[string]int)
	for line := range strings.Lines(after) {
		m := regexp.MustCompile(`^\d+\s+(?:<\.\.\. )?(\w+)(?:\(| resumed>).*\) += `).FindStringSubmatch(line)
		if m != nil {
			counts[m[1]]++
		}
	}
	return counts
}

func TestSystemCallsAgreeWithStrace(t *testing.T) {
	program := build(t, "callers.c")
	want := straceCounts(t, program)
	n := openNode(t)
	g := start(t, program)
	awaitState(t, g.ID.PID, "S")
	started, ended := make(map[string]int), make(map[string]int)
	var failed, first omis.Value
	for _, name := range []string{"getppid", "openat", "read", "close", "clock_nanosleep"} {
		for kind, counts := range map[node.EventKind]map[string]int{node.EventSysCallStarted: started, node.EventSysCallEnded: ended} {
			_, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Name: name}, func(h *node.Hit) {
				counts[name]++
				if name == "openat" && kind == node.EventSysCallStarted {
					first = omis.List(h.Params...)
				}
				if name == "openat" && kind == node.EventSysCallEnded {
					failed = omis.List(h.Params...)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := n.Watch(node.Watch{Event: node.EventSysCallStarted, Proc: g.ID, Name: "frobnicate"}, func(*node.Hit) {})
	wantError(t, err, omis.ParameterError, "frobnicate")
	var hits atomic.Int64
	if _, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) { hits.Add(1) }); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Line(); got != "done" || hits.Load() != 200 {
		t.Errorf("%s, %d hits", got, hits.Load())
	}
	if err := n.Stop(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"getppid", "openat", "close"} {
		if ended[name] != want[name] || started[name] != want[name] {
			t.Errorf("%s: %d started, %d ended, strace saw %d", name, started[name], ended[name], want[name])
		}
	}
	// The first read began before the watch, and the last one has not ended.
	if ended["read"] < 201 || started["read"] < ended["read"]-1 {
		t.Errorf("read: %d started, %d ended", started["read"], ended["read"])
	}
	if len(first.List) < 2 || first.List[1].Str != "/nowhere/at all" {
		t.Errorf("openat started with %v", first)
	}
	if len(failed.List) < 2 || !failed.List[0].Neg || failed.List[1].N != 2 {
		t.Errorf("openat ended with %v", failed)
	}
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
}

// TestHeldSystemCalls holds threads before and after system calls, and sets breakpoints meanwhile, for which the
// held thread executes system calls for the monitor. Then it kills monitors that hold threads.
func TestHeldSystemCalls(t *testing.T) {
	program := build(t, "callers.c")
	n := openNode(t)
	g := start(t, program)
	for _, kind := range []node.EventKind{node.EventSysCallStarted, node.EventSysCallEnded} {
		_, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Name: "getppid"}, func(h *node.Hit) {
			release := h.Hold()
			go func() {
				defer release()
				cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
				if err != nil {
					t.Error(err)
					return
				}
				cancel()
			}()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	g.Begin()
	if got := g.Line(); got != "done" {
		t.Error(got)
	}
	for i := range 8 {
		g := start(t, program)
		kind := []node.EventKind{node.EventSysCallStarted, node.EventSysCallEnded}[i%2]
		outlive(t, g, fmt.Sprintf("event-%d", kind), time.Duration(rand.IntN(20))*time.Millisecond)
		if got := g.Line(); got != "done" {
			t.Error(got)
		}
	}
}

func TestAllSystemCallsHaveNumbers(t *testing.T) {
	for number := range uint64(500) {
		name := calls.ByNumber(number).Name
		if got, err := callNumber(name); !strings.HasPrefix(name, "syscall_") && (err != nil || uint64(got) != number) {
			t.Errorf("%s has the number %d, want %d (%v)", name, got, number, err)
		}
	}
}
