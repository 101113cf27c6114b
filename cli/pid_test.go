package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
)

// TestPidOfAnotherUsersProcess ends a user's process and starts a program of root with the same
// pid. The gateway reports the end of the process, lets the user access nothing of the new one, and
// decides by root's rights whether a user may attach to it.
func TestPidOfAnotherUsersProcess(t *testing.T) {
	t.Run("while a gateway is there", func(t *testing.T) {
		kept := func(calls int) string { return fmt.Sprintf("value=%q", strconv.Itoa(calls)) }
		testReusedPid(t, kept, func(s *served, reuse func()) { reuse() })
	})
	t.Run("while no gateway is there", func(t *testing.T) {
		lost := func(int) string { return "has ended while no gateway was there" }
		testReusedPid(t, lost, func(s *served, reuse func()) {
			s.kill(t)
			reuse()
			s.await(t, s.begin(t))
		})
	})
}

// testReusedPid calls while, which must call reuse; reuse ends the process and starts the new one.
// wanted returns what the probe must report afterwards about a process that made some calls.
func testReusedPid(t *testing.T, wanted func(calls int) string, while func(s *served, reuse func())) {
	s := startServe(t, os.Geteuid())
	program := filepath.Join(s.dir, "tally")
	copyFile(t, program, subject.Compile(t, "tally", "testdata/tally.c"))
	his := *s
	his.cmd = &exec.Cmd{SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}}
	cmd := exec.Command(program)
	cmd.SysProcAttr = his.cmd.SysProcAttr
	former := startTallyAs(t, cmd)
	pid := strconv.Itoa(former.PID)
	his.must(t, "", "attach", "--app", "tally", pid)
	const count = `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><process id="*"/></instrreq>`
	his.mir(t, "tally", count)
	former.says("go")
	time.Sleep(20 * time.Millisecond)
	calls := former.says("stop")

	var c tally
	while(s, func() {
		former.Kill()
		c = startTallyWithPid(t, program, former.PID)
	})
	plain := textOf(t, c.PID, program)
	c.says("go")
	eventually(t, "the process is reported as terminated", func() bool {
		return strings.Contains(his.must(t, "", "apps"), "terminated")
	})
	for _, test := range []struct {
		stdin, words string
		args         []string
	}{
		{count, "has no process any more", []string{"post", "--app", "tally", "-"}},
		{"", "belongs to uid 0", []string{"attach", pid}},
	} {
		if out, errs, status := his.mirador(t, test.stdin, test.args...); status != exitFailed || !strings.Contains(out+errs, test.words) {
			t.Errorf("%q: status %d, want 1 with %q: %s%s", test.args, status, test.words, out, errs)
		}
	}
	if out := his.must(t, `<snapshotreq named="true" stack="8"/>`, "post", "--app", "tally", "-"); strings.Contains(out, "<process") || strings.Contains(out, "<thread") || strings.Contains(out, "<stack") {
		t.Errorf("the snapshot has a process: %s", out)
	}
	for _, request := range []string{": thread_stop([p_1])", ": proc_send_signal([p_1], 9)"} {
		if out, _, _ := s.mirador(t, "", "omis", request); !strings.Contains(out, "no such process token: p_1") {
			t.Errorf("%s: %s", request, out)
		}
	}
	value, _, _ := his.mirador(t, `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`, "post", "--app", "tally", "-")
	if want := wanted(calls); !strings.Contains(value, want) {
		t.Errorf("the probe reports %s, want %s", value, want)
	}
	if !bytes.Equal(plain, textOf(t, c.PID, program)) {
		t.Error("the code of the new process was changed")
	}
	if proc.IsTracedByOther(c.PID) {
		t.Error("the new process is traced")
	}
	his.must(t, "", "release", "tally")
	c.says("stop") // the new process lives
	if out := s.must(t, "", "attach", pid); !strings.HasPrefix(out, "tally p_") || strings.HasSuffix(out, " p_1\n") {
		t.Errorf("root attaches to the new process: %s", out)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startTallyAs(t *testing.T, cmd *exec.Cmd) tally {
	t.Helper()
	c := tally{t, subject.Start(t, cmd)}
	c.Line() // it is ready
	return c
}

// startTallyWithPid starts a program repeatedly until it has a given pid, which other processes of
// the machine may take for a while.
func startTallyWithPid(t *testing.T, program string, pid int) tally {
	t.Helper()
	for range 1000 {
		restore := subject.Next(t, pid)
		c := startTallyAs(t, exec.Command(program))
		restore()
		if c.PID == pid {
			return c
		}
		c.Kill()
	}
	t.Fatalf("pid %d was not assigned again", pid)
	return tally{}
}
