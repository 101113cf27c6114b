//go:build linux && amd64

package place_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
)

// atUprobes opens the eBPF programs of this process for uprobes, so that the kernel keeps them and their
// statistics until the test ends. It omits programs at the kernel's own tracepoints, which run for all
// processes of the machine.
func atUprobes(t *testing.T) (list []*ebpf.Program) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint32]bool)
	for _, path := range files {
		info, err := os.ReadFile(path)
		if err != nil {
			continue // the descriptor that Glob used to read the directory
		}
		for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
			var id uint32
			if n, _ := fmt.Sscanf(lines.Text(), "prog_id: %d", &id); n == 0 || seen[id] {
				continue
			}
			seen[id] = true
			p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			if p.Type() == ebpf.Kprobe {
				list = append(list, p)
			}
		}
	}
	return list
}

// runs returns the number of times that the kernel has executed the programs.
func runs(t *testing.T, list []*ebpf.Program) (sum uint64) {
	t.Helper()
	for _, p := range list {
		s, err := p.Stats()
		if err != nil {
			t.Fatal(err)
		}
		sum += s.RunCount
	}
	return sum
}

// TestDisabledCostsNothing checks that after csr_disable the target's code has its original bytes, and that the
// kernel executes none of our programs any more.
func TestDisabledCostsNothing(t *testing.T) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	const calls = 1000
	g := rig.Start(t, rig.Scenes(t))
	entry, size := g.Func["work"], g.Size["work"]
	own := g.Code(entry, size)
	m := newRig(t, kernel.Name, g)
	m.Region("work", "[]")
	for round := 1; round <= 5; round++ {
		m.Enable()
		m.RunsIn(kernel.Name)
		if bytes.Equal(g.Code(entry, size), own) {
			t.Fatal("no uprobe is in the code")
		}
		list := atUprobes(t)
		before := runs(t, list)
		g.Do("call %d", calls)
		if n := runs(t, list) - before; n < 2*calls {
			t.Fatalf("the kernel has executed our programs %d times for %d calls", n, calls)
		}
		m.Disable()
		if !bytes.Equal(g.Code(entry, size), own) {
			t.Error("a uprobe is in the code after csr_disable")
		}
		before = runs(t, list)
		g.Do("call %d", calls)
		if n := runs(t, list) - before; n != 0 {
			t.Errorf("after csr_disable the kernel has executed our programs %d times for %d calls", n, calls)
		}
		if got, want := rig.Summary(m.Rows(1)), fmt.Sprintf("1×%d/%[1]d/0", round*calls); got != want {
			t.Errorf("measured %s, want %s", got, want)
		}
	}
}
