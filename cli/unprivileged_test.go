package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/examples/targets"
	"mirador/examples/targets/report"
)

// nobody is a user without privileges on any Linux.
const nobody = 65534

// copyTarget copies mmul to a folder where the unprivileged user may run it.
func copyTarget(t *testing.T, dir string) string {
	t.Helper()
	built := targets.Build(t, "mmul")
	for _, name := range []string{"mmul", "libmmul.so"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(built), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "mmul")
}

// TestWalkWithoutPrivileges runs gateway, target and commands as a user without capabilities, from
// attaching to the measured value.
func TestWalkWithoutPrivileges(t *testing.T) {
	s := startServe(t, nobody)
	program := copyTarget(t, s.dir)
	counts := filepath.Join(s.dir, "counts")
	out := s.must(t, "", "run", "--app", "mine", "--stdout", "out", "--", program, "--wait", "--stay", "--counts", counts, "3", "8", "10")
	if out != "mine p_1\n" {
		t.Fatalf("run printed %q", out)
	}
	pid := pidOf(t, s)
	eventually(t, "all threads have their names and stacks", func() bool {
		snapshot := s.must(t, `<snapshotreq named="true" stack="8"/>`, "post", "-")
		return strings.Contains(snapshot, "multiplier-0") && strings.Contains(snapshot, "multiplier-2") && strings.Contains(snapshot, "<stack>")
	})
	id := unitID(t, s.must(t, `<sirreq><resource in="file://`+program+`"/></sirreq>`, "post", "-"), "dot")
	probe := probeID(t, s.must(t, `<instrreq activated="true" flush="true"><codeRegion from="`+id+`"/><metric name="COUNT"/><process id="*"/></instrreq>`, "post", "-"))
	if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	var own *report.Report
	eventually(t, "mmul is done", func() bool {
		r, err := report.ReadFile(counts)
		own = r
		return err == nil && r.State == "done"
	})
	control := func(action string) string {
		return s.must(t, `<ctrlreq action="`+action+`"><probe id="`+probe+`"/></ctrlreq>`, "post", "-")
	}
	if got, want := valueOf(t, control("VALUE")), strconv.FormatInt(own.Total["dot"], 10); got != want {
		t.Errorf("measured %s, mmul itself counted %s", got, want)
	}
	for _, action := range []string{"DEACTIVATE", "ACTIVATE", "RESET", "REMOVE"} {
		control(action)
	}
	if notation := s.must(t, "", "omis", ": proc_get_info([],0x202)"); !strings.Contains(notation, "1 OMIS_OK [p_1] [\""+program) {
		t.Errorf("omis printed %q", notation)
	}
	s.must(t, "", "release", "--kill", "mine")
}

// TestOthersAreRefused asks for another user's processes: from a gateway without privileges, and as
// a user of root's gateway.
func TestOthersAreRefused(t *testing.T) {
	foreign := targets.Start(t, "mmul", "--wait")
	pid := strconv.Itoa(foreign.PID)

	mine := startServe(t, nobody)
	_, errs, status := mine.mirador(t, "", "attach", pid)
	if status != 1 || !strings.Contains(errs, "process "+pid) {
		t.Errorf("an unprivileged gateway: status %d, %q", status, errs)
	}

	roots := startServe(t, os.Geteuid())
	roots.must(t, "", "attach", "--app", "secret", pid)
	as := &served{dir: roots.dir, socket: roots.socket, cmd: mine.cmd} // the unprivileged user, at root's gateway
	for _, c := range []struct {
		args  []string
		words string
	}{
		{[]string{"attach", pid}, "belongs to uid 0"},
		{[]string{"post", "--app", "secret", "-"}, "belong to uid 0"},
		{[]string{"post", "-"}, "there is no application"},
		{[]string{"release", "secret"}, "belong to uid 0"},
		{[]string{"omis", ": proc_get_info([],2)"}, "every process"},
		{[]string{"run", "--", "/bin/true"}, "not as you"},
	} {
		out, errs, status := as.mirador(t, `<snapshotreq/>`, c.args...)
		if status != 1 || !strings.Contains(out+errs, c.words) {
			t.Errorf("%q: status %d, want 1 with %q: %s%s", c.args, status, c.words, out, errs)
		}
	}
	own := targets.StartAs(t, nobody, "mmul", "--wait")
	if out := as.must(t, "", "attach", "--app", "his", strconv.Itoa(own.PID)); !strings.HasPrefix(out, "his p_") {
		t.Errorf("the user's own process: %q", out)
	}
	if out := as.must(t, `<snapshotreq/>`, "post", "-"); !strings.Contains(out, "<process") {
		t.Errorf("his snapshot: %s", out)
	}
	if out := as.must(t, "", "apps"); strings.Contains(out, "secret") {
		t.Errorf("the user sees %s", out)
	}
}

// TestTracedByGDB asks for a process that gdb traces.
func TestTracedByGDB(t *testing.T) {
	s := startServe(t, os.Geteuid())
	target := targets.Start(t, "mmul", "--wait")
	s.must(t, "", "attach", strconv.Itoa(target.PID))
	gdb := exec.Command("gdb", "-q", "-p", strconv.Itoa(target.PID))
	stdin, err := gdb.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gdb.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close() // gdb detaches and ends
		gdb.Wait()
	}()
	eventually(t, "gdb traces the target", func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(target.PID) + "/status")
		return err == nil && !strings.Contains(string(status), "TracerPid:\t0\n")
	})
	out, _, status := s.mirador(t, `<instrreq activated="true" flush="true"><codeRegion from="mmul:dot"/><metric name="COUNT"/></instrreq>`, "post", "-")
	if status != 1 || !strings.Contains(out, "traced by gdb") {
		t.Errorf("status %d: %s", status, out)
	}
}

func pidOf(t *testing.T, s *served) int {
	t.Helper()
	fields := strings.Fields(s.must(t, "", "omis", ": proc_get_info([],0x200)"))
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatalf("no pid in %q", fields)
	}
	return pid
}
