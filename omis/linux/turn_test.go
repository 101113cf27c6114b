//go:build linux && amd64

package linux

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
)

// TestStopWithoutProcessor checks that the node waits for the stop of a thread that does not get its processor
// because another process uses it: such a thread is not one that cannot be stopped.
func TestStopWithoutProcessor(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "1", endless)
	g.Begin()
	var one unix.CPUSet
	one.Set(0)
	tids, err := proc.Threads(g.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			t.Fatal(err)
		}
	}
	before := cpuTime(t, n, g.ID)
	eventually(t, "the target runs", func() bool { return cpuTime(t, n, g.ID) > before })
	// A real-time process has priority on the processor until the kernel's limit for real-time processes.
	greedy := exec.Command("timeout", "1.2", "chrt", "-f", "1", "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	if err := greedy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = greedy.Wait() }() // timeout ends it
	eventually(t, "the target does not run", func() bool {
		used := cpuTime(t, n, g.ID)
		time.Sleep(30 * time.Millisecond)
		return cpuTime(t, n, g.ID) == used
	})
	if _, err := n.Backtraces(g.ID, tids, 4); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}
