package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/cli/doctor"
	"mirador/mir"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/probes/journal"
)

// tally is a process of testdata/tally.c, which calls a function and counts the calls.
type tally struct {
	t *testing.T
	*subject.Subject
}

func startTally(t *testing.T) tally {
	t.Helper()
	c := tally{t, subject.Start(t, exec.Command(subject.Compile(t, "tally", "testdata/tally.c")))}
	c.Line() // it is ready
	return c
}

// says starts or stops the calls and returns their number.
func (c tally) says(what string) (calls int) {
	c.t.Helper()
	c.Tell("%s", what)
	calls, err := strconv.Atoi(c.Line())
	if err != nil {
		c.t.Fatal(err)
	}
	return calls
}

// kill ends the gateway by SIGKILL.
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

// TestGatewayComesBack checks that the gateway after a killed one has its applications and probes.
func TestGatewayComesBack(t *testing.T) {
	s := startServe(t, os.Geteuid())
	c := startTally(t)
	attached := s.must(t, "", "attach", strconv.Itoa(c.PID))
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

// TestDoctorCleansUp checks that doctor finds and removes what a killed gateway has left in the kernel.
func TestDoctorCleansUp(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid(), "--placements", "kernel,trap")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/></instrreq>`)
	if got := s.must(t, "", "doctor", "--json"); strings.Contains(got, s.data()) || !regexp.MustCompile(`"name": "bpf",\s+"state": "(ok|limited|missing)"`).MatchString(got) {
		t.Errorf("doctor lists objects in use as left behind, or lacks a check: %s", got)
	}
	if _, errs, status := s.mirador(t, "", "doctor", "--clean", s.data()); status != 1 || !strings.Contains(errs, "a gateway uses "+s.data()) {
		t.Errorf("doctor removes objects in use: status %d, %s", status, errs)
	}
	s.kill(t)
	if got := s.must(t, "", "doctor", "--json"); !strings.Contains(got, "objects of killed gateways, which used") || !strings.Contains(got, s.data()) {
		t.Errorf("doctor does not list what is left: %s", got)
	}
	before := c.says("stop")
	if got := s.must(t, "", "doctor", "--clean", s.data(), "--json"); strings.Contains(got, s.data()) {
		t.Errorf("left after it was removed: %s", got)
	}
	c.says("go")
	s.await(t, s.begin(t))
	if calls := c.says("stop"); s.counted(t) >= calls-before+1 {
		t.Errorf("%d of %d calls are counted", s.counted(t), calls-before)
	}
}

// TestDoctorMends checks that doctor removes a uprobe that the kernel keeps because the gateway was
// killed shortly before removing it. The test simulates the uprobe by a breakpoint that the journal
// records.
func TestDoctorMends(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	addr := s.addrOf(t, "work")
	s.kill(t)
	before := textOf(t, c.PID, c.Cmd.Path)
	breakAt(t, c.PID, addr)
	noteChange(t, s.data(), c.PID, addr)
	if bytes.Equal(before, textOf(t, c.PID, c.Cmd.Path)) {
		t.Fatal("there is no breakpoint")
	}
	s.must(t, "", "doctor", "--clean", s.data())
	if !bytes.Equal(before, textOf(t, c.PID, c.Cmd.Path)) {
		t.Fatal("the breakpoint is left")
	}
	if err := doctor.Clean(s.data(), []string{miradorPath, registrarCommand}); err != nil { // which has nothing to do
		t.Error(err)
	}
	if !bytes.Equal(before, textOf(t, c.PID, c.Cmd.Path)) {
		t.Error("to clean again changed the program")
	}
	c.says("go")
	c.says("stop")
}

// addrOf returns the address at which a probe of a function would be.
func (s *served) addrOf(t *testing.T, function string) uint64 {
	t.Helper()
	explained := s.must(t, `<instrreq><codeRegion from="tally:`+function+`"/><metric name="COUNT"/></instrreq>`, "post", "--explain", "-")
	at := regexp.MustCompile(`thread_reached_addr\(\[p_1\],(0x[0-9a-f]+)\)`).FindStringSubmatch(explained)
	if at == nil {
		t.Fatalf("the explanation is %s", explained)
	}
	addr, err := strconv.ParseUint(at[1], 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// breakAt writes a breakpoint at an address that no thread reaches at present.
func breakAt(t *testing.T, pid int, addr uint64) {
	t.Helper()
	const int3 = 0xcc
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	if _, err := mem.WriteAt([]byte{int3}, int64(addr)); err != nil {
		t.Fatal(err)
	}
}

// noteChange records in a journal that a uprobe is about to be removed.
func noteChange(t *testing.T, data string, pid int, addr uint64) {
	t.Helper()
	id, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	err = j.Put("kernel/change/1", map[string]any{"proc": id, "members": []uint64{addr}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDataDirectoryInUse checks that two gateways cannot share a data directory.
func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	_, errs, status := s.mirador(t, "", "serve", "--socket", s.socket+"2", "--listen", "off", "--data", s.data())
	if status != 1 || !strings.Contains(errs, fmt.Sprintf("another gateway (pid %d) uses %s", s.cmd.Process.Pid, s.data())) {
		t.Errorf("status %d: %s", status, errs)
	}
}

// killsEnv says how often TestCountsOutliveTheGateway kills the gateway.
const killsEnv = "MIRADOR_TEST_KILLS"

func kills(t *testing.T) int {
	t.Helper()
	if text := os.Getenv(killsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 8 // "make survive" and "make torture" set a larger number
}

// TestCountsOutliveTheGateway kills the gateway at random instants. Its probes continue to count,
// and the next gateway has every count.
func TestCountsOutliveTheGateway(t *testing.T) {
	t.Parallel()
	t.Run("kernel", func(t *testing.T) { countsOutlive(t, "kernel", `<metric name="COUNT"/><metric name="WC_TIME"/>`) })
	t.Run("inline", func(t *testing.T) { countsOutlive(t, "inline", `<metric name="COUNT"/>`) })
}

func countsOutlive(t *testing.T, placement, metrics string) {
	s := startServe(t, os.Geteuid(), "--placements", placement+",trap")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	probe := s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/>`+metrics+
		`<measuring><aggregate function="SUM"/></measuring></instrreq>`)
	if !strings.Contains(probe, `where="`+placement+`"`) {
		t.Fatalf("the probe is not in the wanted placement: %s", probe)
	}
	if placement == "kernel" {
		s.sparesRegistrar(t)
	}
	for i := range kills(t) {
		c.says("go")
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		s.kill(t)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		out := s.begin(t)
		if i%3 == 0 { // kill the gateway while it starts
			time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
			s.reap(t)
			out = s.begin(t)
		}
		s.await(t, out)
		if calls := c.says("stop"); s.counted(t) != calls {
			t.Fatalf("after %d kills, %d of %d calls are counted\n%s", i+1, s.counted(t), calls, s.logged())
		}
	}
	s.mir(t, "tally", `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
}

// TestCountsWhereABreakpointStood checks that a probe counts in the kernel at an address where a
// killed gateway had a breakpoint, and continues to count after another tool attaches to the
// process and sets breakpoints elsewhere.
func TestCountsWhereABreakpointStood(t *testing.T) {
	s := startServe(t, os.Geteuid(), "--placements", "kernel,trap", "--hold", "ptrace")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	elsewhere := s.addrOf(t, "nap")
	s.holdsAt(t, c.PID, s.addrOf(t, "work"))
	s.kill(t)
	s.await(t, s.begin(t))
	probe := s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/>`+
		`<measuring><aggregate function="SUM"/></measuring></instrreq>`)
	if !strings.Contains(probe, `where="kernel"`) {
		t.Fatalf("the probe is not in the kernel: %s", probe)
	}
	s.holdsAt(t, c.PID, elsewhere)
	before := c.says("go")
	eventually(t, "the function is called", func() bool { return c.says("go") > before })
	if calls := c.says("stop"); s.counted(t) != calls {
		t.Fatalf("%d of %d calls are counted", s.counted(t), calls)
	}
	s.mir(t, "tally", `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
}

// holdsAt attaches a tool to a process and enables an event at an address, which requires a breakpoint.
func (s *served) holdsAt(t *testing.T, pid int, addr uint64) {
	t.Helper()
	ask := func(format string, args ...any) string {
		request := fmt.Sprintf(format, args...)
		answer := wants(t, "--unix-socket", s.socket, "-H", "Accept: text/plain", "-d", request, "http://mirador/omis?tool=debugger&flags=1")
		if !strings.Contains(answer, "1 OMIS_OK ") {
			t.Fatalf("%s: %s", request, answer)
		}
		return answer
	}
	process := regexp.MustCompile(`p_\d+`).FindString(ask(`: proc_attach3([],%d,"")`, pid))
	request := regexp.MustCompile(`c_\d+`).FindString(ask("thread_reached_addr([%s],%#x) : print([$time])", process, addr))
	ask(": csr_enable([%s])", request)
}

// TestSamplesOutliveTheGateway checks that after a kill of the gateway a sampled timer still counts
// every execution and times one in N, and that percentiles include every execution.
func TestSamplesOutliveTheGateway(t *testing.T) {
	t.Parallel()
	for _, placement := range []string{"kernel", "inline"} {
		t.Run(placement, func(t *testing.T) { samplesOutlive(t, placement) })
	}
}

func samplesOutlive(t *testing.T, placement string) {
	s := startServe(t, os.Geteuid(), "--placements", placement+",trap")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	probe := s.mir(t, "tally", `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:sample="1/16">
		<codeRegion from="tally:work"/><metric name="WC_TIME"/><measuring><aggregate function="SUM"/></measuring></instrreq>`)
	if !strings.Contains(probe, `where="`+placement+`"`) {
		t.Fatalf("the probe is not in the wanted placement: %s", probe)
	}
	probe = s.mir(t, "tally", `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:percentiles="25 50 90 100">
		<codeRegion from="tally:nap"/><metric name="WC_TIME"/></instrreq>`)
	if !strings.Contains(probe, `where="`+placement+`"`) {
		t.Fatalf("the probe on naps is not in the wanted placement: %s", probe)
	}
	var slept naps
	slept.take(c)
	c.says("go")
	eventually(t, "the sample is large", func() bool { return s.sampled(t).Count > 2000 })
	s.kill(t)
	slept.take(c)
	s.await(t, s.begin(t))
	calls := c.says("stop")
	slept.take(c)
	slept.check(t, s.value(t, "probe-2").Spread)
	m := s.sampled(t)
	if m.Count != int64(calls) || m.Sum == "" || m.Error == "" {
		t.Fatalf("of %d calls: %+v", calls, m)
	}
	// Each thread is sampled by itself, and half of the threads make only 50 calls.
	if m.Timed < m.Count/32 || m.Timed > m.Count/8 {
		t.Errorf("%d of %d are timed, not one in 16", m.Timed, m.Count)
	}
	s.mir(t, "tally", `<ctrlreq action="REMOVE"><probe id="probe-1"/><probe id="probe-2"/></ctrlreq>`)
}

// sampled returns the probe's sample.
func (s *served) sampled(t *testing.T) mir.Sample {
	t.Helper()
	if m := s.value(t, "probe-1"); m.Sample != nil {
		return *m.Sample
	}
	return mir.Sample{}
}

// value returns the measurement document of a probe.
func (s *served) value(t *testing.T, id string) mir.Measurement {
	t.Helper()
	answer := s.mir(t, "tally", `<ctrlreq action="VALUE"><probe id="`+id+`"/></ctrlreq>`)
	document, err := mir.Decode([]byte(answer), mir.ReplyLimits())
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := document.(*mir.Measurement); ok {
		return *m
	}
	return mir.Measurement{}
}

// naps contains the durations of naps that the target was asked for, and their durations by the
// target's own clock, in milliseconds. A probe measures the naps.
type naps struct{ asked, took []float64 }

func (n *naps) take(c tally) {
	c.t.Helper()
	for _, ms := range []int{1, 3, 7, 15} {
		n.asked = append(n.asked, float64(ms))
		n.took = append(n.took, float64(c.says(fmt.Sprintf("nap %d", ms)))/1e6)
	}
}

// check compares the probe's percentiles with those of all naps.
func (n *naps) check(t *testing.T, s *mir.Spread) {
	t.Helper()
	slices.Sort(n.asked)
	slices.Sort(n.took)
	if s == nil || len(s.Percentiles) != 4 {
		t.Fatalf("percentiles of the naps are %+v", s)
	}
	for i, rank := range []int{3, 6, 11, 12} { // of twelve
		p := s.Percentiles[i]
		value, half := decimal(t, p.Value), decimal(t, p.Error)
		// A sleep is not shorter than requested, and not longer than the target's own clock reports
		// around it, except for an error of cost in the subtracted bias.
		const cost = 0.5
		if value+half < n.asked[rank-1]-cost || value-half > n.took[rank-1]+cost || half > value/16+cost {
			t.Errorf("%v%% of the naps took %s ms, give or take %s; the target was asked for %v, and measured %v", p.Of, p.Value, p.Error, n.asked, n.took)
		}
	}
}

func decimal(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sparesRegistrar checks that the gateway refuses to observe its registrar.
func (s *served) sparesRegistrar(t *testing.T) {
	t.Helper()
	for _, pid := range children(t, s.cmd.Process.Pid) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || strings.TrimSpace(string(name)) != registrarName {
			continue
		}
		if _, errs, status := s.mirador(t, "", "attach", strconv.Itoa(pid)); status != 1 || !strings.Contains(errs, "is the registrar") {
			t.Errorf("attaching to the registrar: status %d, %s", status, errs)
		}
		return
	}
	t.Error("there is no registrar")
}

// children returns the child processes of a process.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if child, err := strconv.Atoi(e.Name()); err == nil && proc.Parent(child) == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// reap kills a gateway that may not have become ready yet.
func (s *served) reap(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait() // the error tells that it was killed
}

// counted returns the probe's count.
func (s *served) counted(t *testing.T) (n int) {
	t.Helper()
	answer := s.mir(t, "tally", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`)
	_, value, _ := strings.Cut(answer, `value="`)
	if _, err := fmt.Sscanf(value, "%d\"", &n); err != nil {
		t.Fatalf("no count: %s", answer)
	}
	return n
}
