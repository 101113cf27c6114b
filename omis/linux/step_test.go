//go:build linux && amd64

package linux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/node"
)

// gdbSteps returns the offsets of the addresses after each instruction of the function begin, from stepi or nexti
// of gdb.
func gdbSteps(t *testing.T, program, command string) (offsets []int64) {
	t.Helper()
	script := `
set disable-randomization on
break begin
run < /dev/zero > /dev/null
python
b = int(gdb.parse_and_eval('(long)$pc'))
last = int(gdb.parse_and_eval('(long)&last'))
pc = b
while pc != last:
    gdb.execute('` + command + `', to_string=True)
    pc = int(gdb.parse_and_eval('(long)$pc'))
    print('STEP %d' % (pc - b))
end
kill
`
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gdb", "-q", "-nx", "-batch", "-x", file, program).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "STEP "); ok {
			n, _ := strconv.ParseInt(s, 10, 64)
			offsets = append(offsets, n)
		}
	}
	if len(offsets) == 0 {
		t.Fatalf("gdb: %s", out)
	}
	return offsets
}

func TestStepsAgreeWithGDB(t *testing.T) {
	program := build(t, "steps.c")
	for kind, command := range map[node.EventKind]string{node.EventStepped: "stepi", node.EventSteppedOver: "nexti"} {
		want := gdbSteps(t, program, command)
		for _, breakpoints := range []bool{false, true} {
			t.Run(fmt.Sprint(command, breakpoints), func(t *testing.T) {
				n := openNode(t)
				g := start(t, program)
				var inner, last uint64
				fmt.Sscanf(g.Line(), "%v %v", &inner, &last)
				release := holdAt(t, n, g)
				var got []int64
				in := true
				_, err := n.Watch(node.Watch{Event: kind, Proc: g.ID}, func(h *node.Hit) {
					if in {
						got = append(got, int64(h.Addr-g.Addr))
					}
					if h.Addr == last {
						in = false
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				var hits atomic.Int64
				if breakpoints {
					// At a call, in the called function, and after the call.
					for _, addr := range []uint64{g.Addr + 6, inner, inner + 1, g.Addr + 11} {
						cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: addr}, func(h *node.Hit) {
							if in {
								hits.Add(1)
							}
						})
						if err != nil {
							t.Fatal(err)
						}
						defer cancel()
					}
				}
				release()
				eventually(t, "all instructions are stepped", func() bool {
					s, _ := readStopped(n, g, &got)
					return len(s) >= len(want)
				})
				s, _ := readStopped(n, g, &got)
				if len(s) < len(want) || fmt.Sprint(s[:len(want)]) != fmt.Sprint(want) {
					t.Errorf("\ngot %v\ngdb %v", s, want)
				}
				if breakpoints && hits.Load() < 12 {
					t.Errorf("%d hits", hits.Load())
				}
			})
		}
	}
}

// holdAt makes a target begin its work, and holds it at the first hit of its function.
func holdAt(t *testing.T, n *Node, g *target) (release func()) {
	t.Helper()
	held := make(chan func(), 1)
	var once sync.Once
	if _, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) {
		once.Do(func() { held <- h.Hold() })
	}); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	return <-held
}

// readStopped copies the values that handlers of the process write, while the process is stopped.
func readStopped(n *Node, g *target, values *[]int64) ([]int64, error) {
	if err := n.Stop(g.ID, nil); err != nil {
		return nil, err
	}
	s := append([]int64(nil), *values...)
	return s, n.Continue(g.ID, nil)
}

func TestStepsEnd(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "steps.c"), "0")
	g.Line()
	g.Begin()
	for _, kind := range []node.EventKind{node.EventStepped, node.EventSteppedOver, node.EventStepped} {
		var steps atomic.Int64
		cancel, err := n.Watch(node.Watch{Event: kind, Proc: g.ID}, func(h *node.Hit) { steps.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		awaitMore(t, &steps)
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		checkUntouched(t, g)
	}
	if err := n.Signal(g.ID, int(unix.SIGUSR1)); err != nil {
		t.Fatal(err)
	}
	if got := g.Line(); got != "done" {
		t.Error(got)
	}
}

func TestStepsKilled(t *testing.T) {
	program := build(t, "steps.c")
	for i := range 8 {
		kind := []node.EventKind{node.EventStepped, node.EventSteppedOver}[i%2]
		g := start(t, program)
		g.Line()
		monitor := startMonitor(t, g, fmt.Sprintf("event-%d nowarden", kind))
		g.Begin()
		monitor.Line()
		time.Sleep(time.Duration(i) * time.Millisecond)
		monitor.Kill()
		if got := g.Line(); got != "done" {
			t.Error(got)
		}
		g.HangUp()
		if err := g.Cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
