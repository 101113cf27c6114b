package cli

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// gains is a process of a program with a function that makes a known number of system calls.
type gains struct {
	t *testing.T
	*subject.Subject
}

func startGains(t *testing.T) gains {
	t.Helper()
	g := gains{t, subject.Start(t, exec.Command(subject.Compile(t, "gains", "-O2", "-pthread", "../omis/place/testdata/gains.c")))}
	g.Line() // it is ready
	return g
}

// gain has a number of threads execute the function a number of times, with system calls and naps. It returns the system
// calls that the function has made in all executions, and the most in one, as the program counts them.
func (g gains) gain(threads, times, calls, naps int) (made, most float64) {
	g.t.Helper()
	g.Tell("gain %d %d %d %d 0", threads, times, calls, naps)
	line := strings.Fields(g.Line())
	if len(line) != 9 {
		g.t.Fatalf("the program says %q", line)
	}
	for i, to := range []*float64{&made, &most} {
		n, err := strconv.ParseFloat(line[7+i], 64)
		if err != nil {
			g.t.Fatal(err)
		}
		*to = n
	}
	return made, most
}

// valuesOf returns the values in a measurement document, in their order.
func valuesOf(t *testing.T, document string) (list []float64) {
	t.Helper()
	type element struct {
		Value string    `xml:"value,attr"`
		Inner []element `xml:"measurement"`
	}
	var all element
	if err := xml.Unmarshal([]byte(document), &all); err != nil {
		t.Fatal(err)
	}
	var walk func(element)
	walk = func(e element) {
		if e.Value != "" {
			v, err := strconv.ParseFloat(e.Value, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		for _, inner := range e.Inner {
			walk(inner)
		}
	}
	walk(all)
	return list
}

// TestGainsOfKilledGateway checks that the metrics of a region, which are measured at its ends, are right while a
// gateway runs, and go on when it is killed.
func TestGainsOfKilledGateway(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	g := startGains(t)
	s.must(t, "", "attach", "--app", "gains", strconv.Itoa(g.PID))
	s.mir(t, "gains", `<instrreq activated="true" flush="true"><codeRegion from="gains:gain" to="gains:gain"/>
		<metric name="COUNT"/><metric name="SYSCALL_COUNT"/><metric name="WAIT_COUNT"/><metric name="SYSCALL_TIME:clock_nanosleep"/>
		<measuring><aggregate function="SUM"/><aggregate function="MAXIMUM"/></measuring></instrreq>`)
	executions, calls, naps, most := 0.0, 0.0, 0.0, 0.0
	gain := func(threads, times, each, naptimes int) {
		made, mostInOne := g.gain(threads, times, each, naptimes)
		n := float64(threads * times)
		executions, calls, naps, most = executions+n, calls+made, naps+n*float64(naptimes), max(most, mostInOne)
	}
	check := func() {
		t.Helper()
		v := valuesOf(t, s.mir(t, "gains", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`))
		if len(v) != 8 || v[0] != executions || v[2] != calls || v[3] != most || v[4] < naps || v[4] > naps+executions/2 || v[6] < naps {
			t.Errorf("%v, want %v executions, %v calls, at most %v in one, and %v waits of 1 ms", v, executions, calls, most, naps)
		}
	}
	s.mir(t, "gains", `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:sample="1/1" g:percentiles="50"><codeRegion from="gains:gain" to="gains:gain"/>
		<metric name="SYSCALL_COUNT:getppid"/><measuring interval="50" duration="50"><aggregate function="SUM"/></measuring></instrreq>`)
	gain(3, 20, 7, 2)
	check()
	eventually(t, "60 executions in all durations", func() bool {
		got := s.mir(t, "gains", `<ctrlreq action="VALUE"><probe id="probe-2"/></ctrlreq>`)
		return strings.Contains(got, `value="420" xmlns`) && strings.Contains(got, `count="60" gateway:timed="60"`) && strings.Contains(got, `of="50" value="7" error="0"`)
	})
	s.mir(t, "gains", `<ctrlreq action="REMOVE"><probe id="probe-2"/></ctrlreq>`)
	s.mir(t, "gains", `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:percentiles="0 50"><metric name="SYSCALL_TIME:clock_nanosleep"/></instrreq>`)
	checkNaps := func(naps float64) {
		t.Helper()
		got := s.mir(t, "gains", `<ctrlreq action="VALUE"><probe id="probe-3"/></ctrlreq>`)
		percentiles := regexp.MustCompile(`<gateway:percentile of="(?:0|50)" value="([0-9.]+)"`).FindAllStringSubmatch(got, -1)
		if v := valuesOf(t, got); len(v) != 1 || v[0] < naps || len(percentiles) != 2 {
			t.Fatalf("%s, want the time of %v naps of 1 ms, and percentiles", got, naps)
		}
		for _, p := range percentiles {
			if ms, err := strconv.ParseFloat(p[1], 64); err != nil || ms < 0.9 || ms > 1000 {
				t.Errorf("a nap took %v ms, want 1 ms and more", p[1])
			}
		}
	}
	before := naps
	gain(2, 5, 0, 2)
	checkNaps(naps - before)
	s.kill(t)
	gain(2, 10, 30, 1)
	s.await(t, s.begin(t))
	checkNaps(naps - before)
	check()
	gain(1, 3, 50, 0)
	check()
	if got := wants(t, "--unix-socket", s.socket, "http://mirador/probes/probe-1"); !strings.Contains(got, `"placement": "kernel"`) {
		t.Errorf("it is not measured in the kernel: %s", got)
	}
	s.mir(t, "gains", `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`)
	executions, calls, naps, most = 0, 0, 0, 0
	gain(1, 2, 1, 1)
	check()
	s.mir(t, "gains", `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
	gain(1, 2, 1, 1)
}

// TestKilledGatewayMeasuresOn checks that regions from one function to another, levels and performance counters are
// measured again when a gateway was killed: what programs in the process have measured goes on, and the loss of what
// was in the memory of the gateway is reported.
func TestKilledGatewayMeasuresOn(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	g := startGains(t)
	s.must(t, "", "attach", "--app", "gains", strconv.Itoa(g.PID))
	for _, measured := range []string{
		` xmlns:g="urn:mirador:gateway" g:sample="1/1"><codeRegion from="gains:opens" to="gains:closes"/><metric name="WC_TIME"/><process id="*"/>`,
		`><codeRegion from="gains:grows"/><metric name="HEAP_MEM_USAGE"/>`,
		`><codeRegion from="gains:gain" to="gains:gain"/><metric name="linux:PAGE_FAULTS"/><metric name="linux:EMULATION_FAULTS"/><measuring><aggregate function="SUM"/></measuring>`,
		`><metric name="linux:PAGE_FAULTS"/>`,
		` xmlns:g="urn:mirador:gateway" g:sample="1/3" g:percentiles="50"><codeRegion from="gains:opens" to="gains:closes"/><metric name="WC_TIME"/><process id="*"/>`,
	} {
		s.mir(t, "gains", `<instrreq activated="true" flush="true"`+measured+`</instrreq>`)
	}
	value := func(probe int) string {
		return s.mir(t, "gains", fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="probe-%d"/></ctrlreq>`, probe))
	}
	crossed := 0
	work := func() {
		g.Tell("cross 1 4")
		g.Line()
		g.Tell("gain 1 2 0 0 50")
		g.Line()
		crossed += 4
	}
	check := func(when string, faults float64) {
		t.Helper()
		got := value(1)
		for _, want := range []string{fmt.Sprintf(`count="%d"`, 3*crossed), fmt.Sprintf(`timed="%d"`, 2*crossed), fmt.Sprintf(`unmatched="%d"`, crossed)} {
			if !strings.Contains(got, want) {
				t.Errorf("%s, no %s in %s", when, want, got)
			}
		}
		sampled := regexp.MustCompile(`count="(\d+)" gateway:timed="(\d+)"`).FindStringSubmatch(value(5))
		if len(sampled) == 0 || sampled[1] != strconv.Itoa(3*crossed) {
			t.Errorf("%s, not every beginning is counted: %s", when, value(5))
		} else if timed, _ := strconv.Atoi(sampled[2]); timed > crossed {
			t.Errorf("%s, %d are timed, want at most one of three: %s", when, timed, value(5))
		}
		var before float64
		g.Tell("grow 3000000")
		if _, err := fmt.Sscanf(g.Line(), "done %g", &before); err != nil {
			t.Fatal(err)
		}
		if v := valuesOf(t, value(2)); len(v) != 1 || v[0] != before {
			t.Errorf("%s, the heap has %v bytes, want %v", when, v, before)
		}
		if v := valuesOf(t, value(3)); len(v) != 2 || v[0] < faults || v[0] > faults+20 || v[1] != 0 {
			t.Errorf("%s, the function had %v page faults, want %v", when, v, faults)
		}
		if v := valuesOf(t, value(4)); len(v) != 1 || v[0] < faults || v[0] > faults+500 {
			t.Errorf("%s, the program had %v page faults, want %v", when, v, faults)
		}
	}
	work()
	check("before", 100)
	s.kill(t)
	work()
	s.await(t, s.begin(t))
	work()
	check("after the kill", 100)
	for probe, lost := range []bool{false, true, true, true, false} {
		text := wants(t, "--unix-socket", s.socket, fmt.Sprint("http://mirador/probes/probe-", probe+1))
		if strings.Contains(text, `"notice": "lost`) != lost {
			t.Errorf("reported as lost: want %v of %s", lost, text)
		}
	}
	s.must(t, "", "release", "gains")
	work()
}

// TestValuesAtBeginning checks that with from alone the value at the beginning is measured.
func TestValuesAtBeginning(t *testing.T) {
	s := startServe(t, os.Geteuid())
	g := startGains(t)
	s.must(t, "", "attach", "--app", "gains", strconv.Itoa(g.PID))
	for i, region := range []string{`from="gains:gain"`, `to="gains:gain"`} {
		s.mir(t, "gains", fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion %s/><metric name="SYSCALL_COUNT:getppid"/>
			<measuring><aggregate function="MINIMUM"/><aggregate function="MAXIMUM"/></measuring></instrreq>`, region))
		g.gain(1, 4, 5, 0)
		v := valuesOf(t, s.mir(t, "gains", fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="probe-%d"/></ctrlreq>`, i+1)))
		if want := float64(5 * i); len(v) != 2 || v[0] != want || v[1] != want+15 {
			t.Errorf("%s: %v, want from %v to %v", region, v, want, want+15)
		}
	}
}

// waiters is the process of a program whose threads wait when they are told.
type waiters struct {
	*served
	*subject.Subject
	program string
}

func startWaiters(t *testing.T) waiters {
	s := startServe(t, os.Geteuid())
	program := subject.Compile(t, "waiters", "-O2", "-pthread", "../omis/place/testdata/waiters.c")
	w := waiters{s, subject.Start(t, exec.Command(program)), program}
	w.Line() // it is ready
	s.must(t, "", "attach", "--app", "waiters", strconv.Itoa(w.PID))
	s.mir(t, "waiters", `<snapshotreq/>`) // the main thread is t_1
	return w
}

// do has the program obey a command.
func (w waiters) do(command string, args ...any) {
	w.Tell(command, args...)
	w.Line()
}

// TestExampleOfReport runs the example of section 4 of MIR's report, and compares the file with how often the program
// waited for a lock. The placement is that which was explained.
func TestExampleOfReport(t *testing.T) {
	w := startWaiters(t)
	path := filepath.Join(w.dir, "foo.txt")
	request := `<instrreq flush="true" activated="true" xmlns:g="urn:mirador:gateway" g:details="true"><codeRegion from="waiters:c1"/><metric name="BLOCKED_COUNT"/>
		<measuring delivery="1000" destination="file://` + path + `"><aggregate function="MAXIMUM"/></measuring>
		<thread id="t_2"/><thread id="t_3"/></instrreq>`
	explained := wants(t, "-H", "Prefer: explain", "--unix-socket", w.socket, "-d", request, "http://mirador/apps/waiters/mir")
	probe := w.mir(t, "waiters", request)
	reasons := regexp.MustCompile(`(where|why)="([^"]*)"`)
	named := strings.NewReplacer("c_1", "probe-1", "c_2", "probe-1").Replace(explained)
	for _, reason := range reasons.FindAllStringSubmatch(probe, -1) {
		if !strings.Contains(named, reason[0]) {
			t.Errorf("the probe says %s, and it was explained as %s", reason[0], named)
		}
	}
	if !strings.Contains(probe, "measures other threads than the one that executes it") {
		t.Errorf("nothing says why it is measured by trap: %s", probe)
	}
	var blocked [4]int // by the number of the worker
	for _, step := range []struct{ worker, times int }{{0, 5}, {1, 9}, {2, 20}, {0, 2}, {1, 4}} {
		w.do("lock %d %d", step.worker, step.times)
		w.do("c1 0 0")
		blocked[step.worker] += step.times
	}
	w.do("lock 1 3") // no thread executes the region afterwards
	last := fmt.Sprintf(`<measurement threadId="t_3" value="%d"/>`, blocked[1])
	eventually(t, "the file has "+last, func() bool {
		text, _ := os.ReadFile(path)
		return strings.Contains(string(text), last)
	})
	w.mir(t, "waiters", `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
	w.do("c1 0 0")
}

// TestWaitsWhenAnyThreadExecutes checks how often two threads waited, measured each time any thread executes a region,
// and of this the maximum. The program goes on when the gateway is killed.
func TestWaitsWhenAnyThreadExecutes(t *testing.T) {
	w := startWaiters(t)
	w.mir(t, "waiters", `<instrreq activated="true" flush="true"><codeRegion from="waiters:c1"/><metric name="WAIT_COUNT"/>
		<measuring><aggregate function="MAXIMUM"/></measuring><thread id="t_2"/><thread id="t_3"/></instrreq>`)
	path := filepath.Join(w.dir, "records")
	w.mir(t, "waiters", `<instrreq activated="true" flush="true"><codeRegion from="waiters:c1"/><metric name="WAIT_COUNT"/><event/>
		<measuring delivery="-1" destination="file://`+path+`"/><thread id="t_3"/><thread id="t_2"/></instrreq>`)
	w.mir(t, "waiters", `<ctrlreq action="RESET"><probe id="probe-1"/><probe id="probe-2"/></ctrlreq>`) // threads wait again when a probe is installed
	w.do("nap 0 5")
	w.do("c1 0 0")
	w.do("nap 1 9")
	w.do("nap 2 20")
	w.do("c1 2 3")
	if got := w.mir(t, "waiters", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`); !strings.Contains(got, `<measurement threadId="t_3" value="10"/>`) {
		t.Errorf("t_3 waited 10 times: %s", got)
	}
	if got := recordsIn(t, path, "enter 10 6, leave"); len(got) != 4 { // the first execution is as long as the first thread takes to wait again
		t.Errorf("two executions are recorded as %v", got)
	}
	w.kill(t)
	w.do("nap 0 5")
	w.do("c1 0 3")
	w.await(t, w.begin(t))
	w.do("c1 1 3")
	w.mir(t, "waiters", `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
	w.do("c1 1 3")
}

// TestThreadsOfManyKinds checks what threads write, measured for "?" and named threads together and for all threads of
// the process that executes the region, in two processes; and that these are measured on when the gateway is killed.
func TestThreadsOfManyKinds(t *testing.T) {
	w := startWaiters(t)
	other := waiters{w.served, subject.Start(t, exec.Command(w.program)), w.program}
	other.Line() // it is ready
	w.must(t, "", "attach", "--app", "waiters", strconv.Itoa(other.PID))
	w.mir(t, "waiters", `<snapshotreq/>`) // its main thread is t_5
	for _, entities := range []string{`<thread id="t_2"/><thread id="?"/>`, `<process id="?"><thread id="*"/></process>`} {
		w.mir(t, "waiters", `<instrreq activated="true" flush="true"><codeRegion from="waiters:c2" to="waiters:c2"/>
			<metric name="SYSCALL_COUNT:write"/><metric name="linux:WRITE_BYTES"/>`+entities+`</instrreq>`)
	}
	touch := func(w waiters, worker, pages int) (answer float64) {
		t.Helper()
		w.Tell("c2 %d %d", worker, pages)
		return float64(len(w.Line()) + 1)
	}
	value := func(probe int) string {
		return w.mir(t, "waiters", fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="probe-%d"/></ctrlreq>`, probe))
	}
	check := func(probe int, want ...float64) {
		t.Helper()
		if got := value(probe); !slices.Equal(valuesOf(t, got), want) {
			t.Errorf("probe-%d: %v, want %v", probe, got, want)
		}
	}
	first := touch(w, 0, 50)
	check(1, 1, 50, 1, first)             // t_2, and t_1, which executed the function
	check(2, 1, first, 1, 50, 0, 0, 0, 0) // t_1 to t_4
	first = touch(w, 1, 70)
	second := touch(other, 2, 30)
	check(1, 0, 0, 1, first, 1, second) // t_2 when t_5 executed it, t_1 and t_5
	check(2, 1, first, 0, 0, 1, 70, 0, 0, 1, second, 0, 0, 0, 0, 1, 30)
	w.kill(t)
	touch(other, 0, 10)
	w.await(t, w.begin(t))
	first = touch(w, 0, 20)
	check(1, 1, 20, 1, first)
	check(2, 1, first, 1, 20, 0, 0, 0, 0)
	for probe := range 2 {
		w.mir(t, "waiters", fmt.Sprintf(`<ctrlreq action="REMOVE"><probe id="probe-%d"/></ctrlreq>`, probe+1))
	}
	touch(w, 1, 5)
}
