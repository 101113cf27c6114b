package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis/host/proc"
)

// helpers returns the processes that the gateway started for itself.
func (s *served) helpers(t *testing.T) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		more, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", s.cmd.Process.Pid, task.Name())) // a thread may have ended
		text = append(append(text, ' '), more...)
	}
	seen := make(map[int]bool)
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestCountsSurviveTheHelpers kills the helpers while the gateway lives, and checks that a probe
// that the monitor executes loses no count.
func TestCountsSurviveTheHelpers(t *testing.T) {
	s := startServe(t, os.Geteuid(), "--placements", "trap")
	c := startTally(t)
	before := c.says("stop")
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><process id="*"/></instrreq>`)
	for range 3 {
		killed := s.helpers(t)
		for _, pid := range killed {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if len(killed) == 0 {
			t.Fatal("the gateway has no helpers")
		}
		c.says("go")
		time.Sleep(50 * time.Millisecond)
		calls := c.says("stop")
		eventually(t, "every call is counted", func() bool { return s.counted(t) == calls-before })
	}
}

// TestLostCountsAreReported kills the gateway and the helpers while the monitor executes a probe,
// and checks that the probe reports lost counts.
func TestLostCountsAreReported(t *testing.T) {
	t.Run("before and after", func(t *testing.T) {
		lostCountsAreReported(t, startServe(t, os.Geteuid(), "--placements", "trap"), "")
	})
	// A request of another tool moves the probe to the monitor. The request ends with the
	// gateway, so that the probe runs elsewhere afterwards.
	t.Run("before", func(t *testing.T) {
		lostCountsAreReported(t, startServe(t, os.Geteuid()), `thread_has_started_lib_call([],"malloc") : print([$thread])`)
	})
}

func lostCountsAreReported(t *testing.T, s *served, otherRequest string) {
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/></instrreq>`)
	c.says("go")
	if otherRequest != "" {
		for _, request := range []string{fmt.Sprintf(`: proc_attach3([],%d,"")`, c.PID), otherRequest, ": csr_enable([])"} {
			if reply := wants(t, "--unix-socket", s.socket, "--data-binary", request, "http://mirador/omis?tool=other"); strings.Contains(reply, "error") {
				t.Fatal(reply)
			}
		}
	}
	where := func() string { return wants(t, "--unix-socket", s.socket, "http://mirador/probes") }
	eventually(t, "the monitor executes the probe", func() bool { return strings.Contains(where(), `"placement": "trap"`) })
	eventually(t, "something is counted", func() bool {
		return strings.Contains(s.mir(t, "tally", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`), "value=")
	})
	helpers := s.helpers(t)
	s.kill(t)
	for _, pid := range helpers {
		syscall.Kill(pid, syscall.SIGKILL) // an error means that the helper has ended already
	}
	for _, pid := range helpers {
		eventually(t, "a helper ends", func() bool {
			_, err := proc.ThreadStart(pid, pid)
			return err != nil
		})
	}
	s.await(t, s.begin(t))
	probes := where()
	if trap := strings.Contains(probes, `"placement": "trap"`); trap != (otherRequest == "") {
		t.Errorf("the probe runs in the wrong place: %s", probes)
	}
	if !strings.Contains(probes, `"notice": "lost: what was measured before `) {
		t.Errorf("the probe does not report its loss: %s", probes)
	}
	if !strings.Contains(s.logged(), "has lost what it had measured") {
		t.Errorf("the log does not report the loss")
	}
	s.must(t, "", "release", "tally")
}
