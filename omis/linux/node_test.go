//go:build linux && amd64

package linux

import (
	"debug/elf"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

func procIdentify(pid int) (omis.ProcID, error) { return proc.Identify(pid) }

func procMaps(pid int) (proc.Mappings, error) { return proc.Maps(pid) }

func TestCounts(t *testing.T) {
	hammer := build(t, "hammer.c")
	for _, threads := range []int{1, 4, 50} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			calls := 20000 / threads
			want := subject.Alone(t, hammer, fmt.Sprint(threads), fmt.Sprint(calls))
			n := openNode(t)
			g := start(t, hammer, fmt.Sprint(threads), fmt.Sprint(calls))
			var hits atomic.Int64
			cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) { hits.Add(1) })
			if err != nil {
				t.Fatal(err)
			}
			g.Begin()
			if got := g.Finish(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if hits.Load() != int64(threads*calls) {
				t.Errorf("%d hits, want %d", hits.Load(), threads*calls)
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
		})
	}
}

// text reads the code of a target from its memory and from its file.
func text(t *testing.T, g *target) (memory, file []byte) {
	t.Helper()
	f, err := elf.Open(fmt.Sprintf("/proc/%d/exe", g.ID.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ms, err := proc.Modules(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			file = make([]byte, s.Filesz)
			if _, err := s.ReadAt(file, 0); err != nil {
				t.Fatal(err)
			}
			memory = make([]byte, s.Filesz)
			if _, err := proc.ReadMemory(g.ID.PID, s.Vaddr+ms[0].Bias, memory); err != nil {
				t.Fatal(err)
			}
			return memory, file
		}
	}
	t.Fatal("no code")
	return nil, nil
}

func checkUntouched(t *testing.T, g *target) {
	t.Helper()
	checkText(t, g)
	s, err := proc.ReadStatus(g.ID.PID)
	if err != nil || s.Tracer != 0 || s.Caught&proc.SignalBit(unix.SIGTRAP) != 0 {
		t.Errorf("the monitor left the tracer %d, handlers of the signals %x, %v", s.Tracer, s.Caught, err)
	}
}

func TestCancelRestores(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "4", endless)
	g.Begin()
	for range 20 {
		var hits atomic.Int64
		cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) { hits.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "hits", func() bool { return hits.Load() >= 100 })
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		after := hits.Load()
		checkUntouched(t, g)
		if hits.Load() != after {
			t.Error("hits after cancel")
		}
	}
}

func TestBacktraces(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "4", endless)
	g.Begin()
	tids, err := n.Threads(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	bts, err := n.Backtraces(g.ID, tids, 0)
	t.Log(time.Since(begin))
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bts {
		t.Logf("%d %x %v", tids[i], b.Frames, b.Err)
	}
	begin = time.Now()
	n.Backtraces(g.ID, tids, 0)
	t.Log(time.Since(begin))
	checkUntouched(t, g)
}

func TestLaunch(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	dir := t.TempDir()
	p, err := n.Launch(node.Launch{Path: hammer, Args: []string{"4", "1000"}, IO: []string{"", dir + "/out"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int64, 1)
	if _, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: p}, func(h *node.Hit) { done <- h.Time }); err != nil {
		t.Fatal(err)
	}
	ms, err := n.Modules(p)
	t.Log(ms, err)
	time.Sleep(50 * time.Millisecond)
	if b, _ := os.ReadFile(dir + "/out"); len(b) > 0 {
		t.Errorf("the launched process runs before Continue: %s", b)
	}
	if err := n.Continue(p, nil); err != nil {
		t.Fatal(err)
	}
	<-done
	b, _ := os.ReadFile(dir + "/out")
	t.Logf("%s", b)
	eventually(t, "the process is reaped", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID))
		return err != nil
	})
}
