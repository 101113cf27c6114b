//go:build linux

package tasks

import (
	"encoding/binary"
	"os"
	"os/exec"
	"testing"
)

func TestProcesses(t *testing.T) {
	r := open(t)
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	worker(t, 0) // a second thread of this process
	seen := make(map[int]int)
	if err := r.ReadProcesses(func(p *Process) {
		if seen[p.TID] != 0 {
			t.Errorf("process %d was read twice", p.TID)
		}
		seen[p.TID] = p.Threads
	}); err != nil {
		t.Fatal(err)
	}
	if seen[cmd.Process.Pid] != 1 || seen[os.Getpid()] < 2 {
		t.Errorf("%d threads of a process with one, %d of this one", seen[cmd.Process.Pid], seen[os.Getpid()])
	}
}

// TestTimesOfAProcess checks that the times of a process include its thread and all ended
// ones.
func TestTimesOfAProcess(t *testing.T) {
	record := make([]byte, processSize)
	for at, n := range map[int]uint64{
		recordRan: 1000, recordUser: 30, recordSystem: 10, recordShownUser: 7777, recordShownSystem: 7777, processThreads: 1,
		processRan: 3000, processUser: 90, processSystem: 70, processShownUser: 100, processShownSystem: 200,
	} {
		binary.LittleEndian.PutUint64(record[at:], n)
	}
	p := parseProcess(record)
	if p.Threads != 1 || p.Ran != 4000 || p.ticked != (modes{120, 80}) || p.shown != (modes{100, 200}) || p.System() != 1600 {
		t.Errorf("%+v, in the kernel %d", p, p.System())
	}
}
