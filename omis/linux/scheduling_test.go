//go:build linux && amd64

package linux

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/node"
)

// TestScheduling compares the scheduling events of a thread that sleeps and wakes with the kernel's counts of
// context switches.
func TestScheduling(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "callers.c"))
	var set unix.CPUSet // on other processors the kernel may omit events of a tracepoint for a moment
	set.Set(0)
	if err := unix.SchedSetaffinity(g.ID.PID, &set); err != nil {
		t.Fatal(err)
	}
	begin := n.Now()
	var mu sync.Mutex
	counts := make(map[node.EventKind]int)
	var cancels []func() error
	for _, kind := range []node.EventKind{node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventUnblocked} {
		cancel, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Threads: []int{g.ID.PID}}, func(h *node.Hit) {
			mu.Lock()
			defer mu.Unlock()
			counts[kind]++
			if h.TID != g.ID.PID || h.Time < begin || h.Time > n.Now() {
				t.Errorf("thread %d at %d, now %d", h.TID, h.Time, n.Now())
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		cancels = append(cancels, cancel)
	}
	fields := node.ProcVolContSwitch | node.ProcInvolContSwitch
	before, _ := n.ProcInfo(g.ID, fields)
	g.Begin()
	g.Line()
	awaitState(t, g.ID.PID, "S")
	after, _ := n.ProcInfo(g.ID, fields)
	blocked := int(after.VoluntarySwitches - before.VoluntarySwitches)
	switches := blocked + int(after.InvoluntaryOnes-before.InvoluntaryOnes)
	eventually(t, "all switches are reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return counts[node.EventDescheduled] >= switches && counts[node.EventScheduled] >= switches &&
			counts[node.EventBlocked] >= blocked && counts[node.EventUnblocked] >= blocked
	})
	for _, cancel := range cancels {
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if counts[node.EventBlocked] != blocked || counts[node.EventDescheduled] != switches {
		t.Errorf("%v, the kernel counts %d switches, %d of them voluntary", counts, switches, blocked)
	}
	if counts[node.EventScheduled] != switches || counts[node.EventUnblocked] != blocked {
		t.Errorf("%v, the kernel counts %d switches, %d of them voluntary", counts, switches, blocked)
	}
	checkUntouched(t, g)
}
