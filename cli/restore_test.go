package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tally is a process of testdata/tally.c: it calls a function and knows how often.
type tally struct {
	t   *testing.T
	pid int
	in  io.Writer
	out *bufio.Reader
}

func startTally(t *testing.T) *tally {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tally")
	if msg, err := exec.Command("gcc", "-O2", "-g", "-pthread", "-o", path, "testdata/tally.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	})
	c := &tally{t, cmd.Process.Pid, in, bufio.NewReader(out)}
	c.answer()
	return c
}

// says has it go or stop; after "stop" nobody calls the function any more.
func (c *tally) says(what string) (calls int) {
	c.t.Helper()
	fmt.Fprintln(c.in, what)
	calls, err := strconv.Atoi(c.answer())
	if err != nil {
		c.t.Fatal(err)
	}
	return calls
}

func (c *tally) answer() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("the target says nothing more: %v", err)
	}
	return strings.TrimSpace(line)
}

// kill ends the gateway as nothing else does.
func (s *served) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatal("a killed gateway does not end")
	}
}

// mir posts a document for an application.
func (s *served) mir(t *testing.T, app, document string) string {
	t.Helper()
	return s.must(t, document, "post", "--app", app, "-")
}

// A gateway that was killed comes back with its applications and probes.
func TestGatewayComesBack(t *testing.T) {
	s := startServe(t, os.Geteuid())
	c := startTally(t)
	attached := s.must(t, "", "attach", strconv.Itoa(c.pid))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><process id="*"/></instrreq>`)
	s.mir(t, "tally", `<instrreq><codeRegion from="tally:work"/><metric name="WC_TIME"/></instrreq>`)
	apps := s.must(t, "", "apps")
	s.kill(t)
	s.await(t, s.begin(t))
	if got := s.must(t, "", "apps"); got != apps || !strings.HasPrefix(attached, "tally p_1") {
		t.Errorf("applications\n%swere\n%s", got, apps)
	}
	probes := wants(t, "--unix-socket", s.socket, "http://mirador/probes")
	for _, part := range []string{`"id": "probe-1"`, `"state": "active"`, `"id": "probe-2"`, `"state": "defined"`} {
		if !strings.Contains(probes, part) {
			t.Errorf("no %s in %s", part, probes)
		}
	}
	s.mir(t, "tally", `<ctrlreq action="REMOVE"><probe id="probe-1"/><probe id="probe-2"/></ctrlreq>`)
	s.must(t, "", "release", "tally")
	s.kill(t)
	s.await(t, s.begin(t))
	if got := wants(t, "--unix-socket", s.socket, "http://mirador/apps"); strings.TrimSpace(got) != "[]" {
		t.Errorf("released applications came back: %s", got)
	}
}

// Two gateways do not share a data directory.
func TestDataDirectoryInUse(t *testing.T) {
	s := startServe(t, os.Geteuid())
	_, errs, status := s.mirador(t, "", "serve", "--socket", s.socket+"2", "--listen", "off", "--data", s.data())
	if status != 1 || !strings.Contains(errs, fmt.Sprintf("another gateway (pid %d) uses %s", s.cmd.Process.Pid, s.data())) {
		t.Errorf("status %d: %s", status, errs)
	}
}
