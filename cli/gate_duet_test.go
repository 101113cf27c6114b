package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/cli/gate/report"
)

const slowerPrice = `<instrreq><codeRegion from="work:price"/><metric name="WC_TIME" g:max-change="100%"/></instrreq>`

// workers returns the processes of a gate's programs.
func (g *gated) workers() (pids []int) {
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if path, err := os.Readlink(exe); err == nil && strings.HasPrefix(path, g.dir+"/") {
			pid, _ := strconv.Atoi(strings.Split(exe, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// field returns a field of /proc/PID/status, "" if the process has ended.
func field(pid int, name string) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, _ := strings.Cut(string(text), "\n"+name+":\t")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// TestGateDuet compares programs of which one takes ten times as long, and observes the duet:
// three processes on one processor, of which at most one runs.
func TestGateDuet(t *testing.T) {
	g := newGated(t, "-DROUNDS=2000")
	cmd := g.command(t, slowerPrice, "--base=base/work 1 nap", "--head=head/work 1 nap", "--rounds=1", "--block=50ms", "--json")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := startTied(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	most, seen := 0, map[string]bool{}
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(10 * time.Millisecond): // to list all processes takes a millisecond
			most = max(most, g.observe(t, seen))
		}
	}
	text, _ := os.ReadFile(out.Name())
	var rep report.Report
	if err := json.Unmarshal(text, &rep); err != nil || cmd.ProcessState.ExitCode() != exitGateFailed || len(rep.Results) != 1 {
		t.Fatalf("status %d\n%s", cmd.ProcessState.ExitCode(), text)
	}
	if r := rep.Results[0]; *r.Change < 3 || *r.Low < 1 || r.Samples < 9 || *r.Head < 3**r.Base || filepath.Base(r.File) != "work.c" {
		t.Errorf("%+v", r)
	}
	if reason := rep.Results[0].Reason; !strings.Contains(reason, "in its own code") && !strings.Contains(reason, "In each call of head") {
		t.Errorf("the failure is not explained: %s", reason)
	} else if !strings.Contains(reason, ". The slowest round (") || !strings.Contains(reason, "work in ") {
		t.Errorf("the slowest round is not described: %s", reason)
	}
	if most != 3 || !seen["T (stopped)"] || !seen["R (running)"] {
		t.Errorf("there were %d programs at most, in the states %v", most, seen)
	}
}

// TestGateDuetOfServers compares servers, each with its own port and its own load.
func TestGateDuetOfServers(t *testing.T) {
	g := newGated(t, "-DROUNDS=2000")
	g.share(t)
	const server = "/work {port} answer"
	out, errs, status := g.run(t, slowerPrice, "--base=base"+server, "--head=head"+server, "--rounds=1", "--block=50ms",
		"--ready=bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'", "--load=base/work {port} ask")
	if status != exitGateFailed || !strings.Contains(out, "head takes +") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, errs, status = g.run(t, slowerPrice, "--base=base"+server, "--head=head"+server, "--rounds=1", "--load=true")
	if status != exitFailed || !strings.Contains(errs, "under a load that has ended") {
		t.Errorf("a load that ends: status %d\n%s%s", status, out, errs)
	}
}

// observe checks that at most one program runs, and returns the number of programs.
func (g *gated) observe(t *testing.T, seen map[string]bool) int {
	t.Helper()
	pids := g.workers()
	slices.Sort(pids)
	states := func() (states []string) {
		for _, pid := range pids {
			states = append(states, field(pid, "State"))
		}
		return states
	}
	runs := func(state string) bool { return state == "R (running)" || state == "S (sleeping)" } // not stopped
	// A program ran all the time if it did before and after the others were looked at.
	before, after := states(), states()
	ran := 0
	for i, pid := range pids {
		seen[before[i]] = true
		if runs(before[i]) && runs(after[i]) {
			ran++
			if cpus := field(pid, "Cpus_allowed_list"); strings.ContainsAny(cpus, ",-") && field(pid, "State") == "T (stopped)" {
				t.Errorf("process %d may run on the processors %s", pid, cpus)
			}
		}
	}
	if ran > 1 {
		t.Errorf("%d programs run at the same time: %v", ran, after)
	}
	return len(pids)
}

// TestGateDuetKilled kills a gate while its programs are stopped: none stays stopped, none is left.
func TestGateDuetKilled(t *testing.T) {
	g := newGated(t)
	cmd := g.command(t, slowerPrice, "--base=base/work 1 nap", "--head=head/work 1 nap", "--rounds=1000")
	if err := startTied(cmd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all programs are there, two of them stopped", func() bool {
		stopped := 0
		for _, pid := range g.workers() {
			if field(pid, "State") == "T (stopped)" {
				stopped++
			}
		}
		return stopped >= 2
	})
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	eventually(t, "the programs end", func() bool { return len(g.workers()) == 0 })
}

// TestGateDuetRefuses checks what cannot be compared.
func TestGateDuetRefuses(t *testing.T) {
	g := newGated(t)
	for _, test := range []struct {
		head   string
		status int
		want   string
	}{
		{"1", exitUsage, "not ids of processes"},
		{"head/work 1000", exitFailed, "ended during the measurement"},
	} {
		out, errs, status := g.run(t, slowerPrice, "--base=base/work 1 nap", "--head="+test.head)
		if status != test.status || !strings.Contains(errs, test.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", test.head, status, test.status, test.want, out, errs)
		}
	}
}

// TestGateSelfTest slows a function down by probes: the gate fails then, and passes without. On a busy machine it may
// be inconclusive, but it must not report the opposite.
func TestGateSelfTest(t *testing.T) {
	g := newGated(t)
	test := func(requests string, status int, want string, args ...string) report.Report {
		t.Helper()
		cmd := g.command(t, requests, args...)
		cmd.Args = append([]string{miradorPath, "gate", "self-test", "--head=base/work 1 nap", "--rounds=1", "--block=50ms", "--json"}, args...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, _ := cmd.Output()
		var rep report.Report
		if got := cmd.ProcessState.ExitCode(); got == exitGateUnclear && status == exitOK {
			t.Logf("inconclusive: %s", out)
		} else if got != status || !strings.Contains(string(out)+errs.String(), want) {
			t.Errorf("%q: status %d, want %d and %q\n%s%s", args, got, status, want, out, &errs)
		} else if status == exitOK {
			if err := json.Unmarshal(out, &rep); err != nil {
				t.Error(err)
			}
		}
		return rep
	}
	rep := test(slowerPrice, exitOK, "as it must", "--slowdown=300")
	if rep.Results != nil && (len(rep.Results) != 2 || *rep.Results[0].Change > 1 || *rep.Results[1].Change < 1.5) {
		t.Errorf("%+v", rep)
	}
	test(slowerPrice, exitUsage, "within the limit", "--slowdown=50")
	test(fmt.Sprintf(countPrice, `g:max="1"`), exitUsage, "nothing to try")
}
