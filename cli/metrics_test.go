package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/mir/client"
	"mirador/mir/translate"
	"mirador/omis/host/perf"
	"mirador/omis/linux/subject"
)

// activity is a program that says what it does, and a gateway that measures it.
type activity struct {
	*served
	t *testing.T
	p *subject.Subject
}

func startActivity(t *testing.T) *activity {
	t.Helper()
	s := startServe(t, 0)
	p := subject.Start(t, exec.Command(subject.Compile(t, "activity", "testdata/activity.c")))
	p.Line() // it is ready
	s.must(t, "", "attach", strconv.Itoa(p.PID))
	return &activity{s, t, p}
}

// measure begins to measure metrics.
func (a *activity) measure(metrics ...string) {
	a.t.Helper()
	a.mir(a.t, "activity", `<instrreq activated="true" flush="true"><metric name="`+strings.Join(metrics, `"/><metric name="`)+`"/></instrreq>`)
}

// do tells the program to do something, and returns its answer.
func (a *activity) do(what string, n int) (answer []float64) {
	a.t.Helper()
	a.p.Tell("%s %d", what, n)
	for _, text := range strings.Fields(a.p.Line()) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		answer = append(answer, v)
	}
	return answer
}

// between checks that a value is at least least and at most most.
func (a *activity) between(what string, got, least, most float64) {
	a.t.Helper()
	if got < least || got > most {
		a.t.Errorf("%s is %g, want %g to %g", what, got, least, most)
	}
}

// TestMetricsOfFiles compares the metrics of files with the program's own sums and its clock; a
// pipe must not count.
func TestMetricsOfFiles(t *testing.T) {
	a := startActivity(t)
	a.measure("linux:FILE_READ_BYTES", "linux:FILE_WRITE_BYTES", "linux:FILE_READ_TIME", "linux:FILE_WRITE_TIME", "linux:FILE_WAIT_TIME")
	own := a.do("files", 500)
	v := a.values(t, "activity", "probe-1", 5)
	a.between("FILE_READ_BYTES", v[0], own[1], own[1])
	a.between("FILE_WRITE_BYTES", v[1], own[0], own[0])
	a.between("FILE_READ_TIME + FILE_WRITE_TIME", v[2]+v[3], 1e-6, own[2]/1e6)
	a.between("FILE_WAIT_TIME", v[4], 0, own[2]/1e6)
}

// TestMetricsOfUsage compares the heap with mallinfo2, and what the kernel counts with getrusage.
func TestMetricsOfUsage(t *testing.T) {
	a := startActivity(t)
	a.measure("HEAP_MEM_USAGE", "NON_HEAP_MEM_USAGE", "linux:MINOR_FAULTS", "linux:VOLUNTARY_SWITCHES", "linux:USER_TIME", "linux:SYSTEM_TIME", "linux:RESIDENT_MEM")
	for _, n := range []int{10, 1000, 100} {
		own := a.do("heap", n)
		v := a.values(t, "activity", "probe-1", 7)
		a.between(fmt.Sprintf("HEAP_MEM_USAGE after %d allocations", 2*n), v[0], own[0], own[0])
		kB := strings.Fields(tells(t, "ps", "-p", strconv.Itoa(a.p.PID), "-o", "rss="))
		resident, _ := strconv.ParseFloat(kB[0], 64)
		a.between("RESIDENT_MEM", v[6], resident*1024-256<<10, resident*1024+256<<10)
		a.between("NON_HEAP_MEM_USAGE", v[1], 1, v[6])
	}
	own := a.do("usage", 1)
	v := a.values(t, "activity", "probe-1", 7)
	a.between("MINOR_FAULTS", v[2], own[0], own[0]+20)
	a.between("VOLUNTARY_SWITCHES", v[3], own[1], own[1]+5) // it waits for its next line
	a.between("USER_TIME", v[4], own[2]-20, own[2]+20)      // in steps of 10 ms
	a.between("SYSTEM_TIME", v[5], own[3]-20, own[3]+20)
}

// TestMetricsOfCallClasses checks that the kernel has all system calls of all classes, and
// compares the number of two with what the program made.
func TestMetricsOfCallClasses(t *testing.T) {
	a := startActivity(t)
	a.measure("SYSCALL_COUNT:%network", "SYSCALL_COUNT:%memory", "SYSCALL_COUNT:%file", "SYSCALL_COUNT:%ipc",
		"SYSCALL_COUNT:%time", "SYSCALL_COUNT:%signal", "SYSCALL_COUNT:%process", "SYSCALL_COUNT:%desc")
	a.do("network", 100)
	a.do("memory", 50)
	v := a.values(t, "activity", "probe-1", 8)
	a.between("%network", v[0], 100, 100)
	a.between("%memory", v[1], 100, 100)
	a.between("%file", v[2], 0, 0)
	a.between("%desc", v[7], 200, 210)
}

// TestMetricsOfTheNode compares the memory of the node with free.
func TestMetricsOfTheNode(t *testing.T) {
	a := startActivity(t)
	a.measure("linux:NODE_MEM_USED", "linux:NODE_MEM_AVAILABLE", "linux:NODE_LOAD")
	v := a.values(t, "activity", "probe-1", 3)
	free := strings.Fields(tells(t, "sh", "-c", "free -b | grep Mem:"))
	all, _ := strconv.ParseFloat(free[1], 64)
	a.between("NODE_MEM_USED + NODE_MEM_AVAILABLE", v[0]+v[1], all, all)
	a.between("NODE_LOAD", v[2], 0, 1e4)
}

// TestMetricsPage checks that the page of the metrics has all that can be measured and all of
// Table 1, each with an oracle and a test, and that the tests that it names exist.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile("../doc/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range translate.Catalog() {
		if m.Space != translate.PAPI && m.Name != "COUNT" && !strings.Contains(string(page), "`"+m.Name+"`") {
			t.Errorf("doc/metrics.md has no %s", m.Name)
		}
	}
	tables, _, _ := strings.Cut(string(page), "## Comparing by hand")
	for line := range strings.Lines(tables) {
		cells := strings.Split(line, "|") // the first and the last are outside of the table
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") || !regexp.MustCompile("^ `[A-Z_]+`").MatchString(cells[1]) || strings.Contains(line, "not measured") {
			continue
		}
		if strings.TrimSpace(cells[3]) == "" || !regexp.MustCompile("`Test[A-Za-z]+`|the same|[a-z]+\\.txtar").MatchString(cells[4]) {
			t.Errorf("doc/metrics.md names no oracle, or no test of it: %s", line)
		}
	}
	for _, name := range regexp.MustCompile("Test[A-Za-z]+").FindAllString(string(page), -1) {
		if exec.Command("grep", "-rqw", "func "+name, "--include=*_test.go", "../omis", "../cli").Run() != nil {
			t.Errorf("doc/metrics.md names %s, which does not exist", name)
		}
	}
}

// TestMetricsOfPerf compares what the kernel's performance counters count, also in a thread that
// begins later, with perf stat.
func TestMetricsOfPerf(t *testing.T) {
	a := startActivity(t)
	const events = "page-faults,cpu-migrations,alignment-faults,emulation-faults"
	const inRegion = `<instrreq activated="true" flush="true"><codeRegion from="activity:touch" to="activity:touch"/>
		<metric name="linux:PAGE_FAULTS"/><metric name="linux:CPU_MIGRATIONS"/>%s<measuring><aggregate function="SUM"/></measuring></instrreq>`
	perf := startPerf(t, a.p.PID, events)
	a.measure("linux:PAGE_FAULTS", "linux:CPU_MIGRATIONS", "linux:ALIGNMENT_FAULTS", "linux:EMULATION_FAULTS")
	a.mir(t, "activity", fmt.Sprintf(inRegion, "")) // nearly all happens in the function that both threads execute
	a.do("events", 300)
	got := a.values(t, "activity", "probe-1", 4)
	counts := perf()
	t.Logf("perf stat %v, measured %v", counts, got)
	for i, want := range counts {
		a.between(strings.Split(events, ",")[i], got[i], max(want-5, 0), want)
	}
	a.between("page faults", got[0], 600, 700) // 300 in each of two threads
	v := valuesOf(t, a.mir(t, "activity", `<ctrlreq action="VALUE"><probe id="probe-2"/></ctrlreq>`))
	t.Logf("in the function, read in the kernel: %v", v)
	a.between("page faults in the function", v[0], 600, counts[0])
	a.between("migrations in the function", v[1], max(counts[1]-20, 0), counts[1])
	a.mir(t, "activity", `<ctrlreq action="REMOVE"><probe id="probe-2"/></ctrlreq>`)
	a.mir(t, "activity", fmt.Sprintf(inRegion, `<metric name="linux:ALIGNMENT_FAULTS"/>`))
	a.control(t, "DEACTIVATE")
	still := a.values(t, "activity", "probe-1", 4) // the scheduler may have moved the process meanwhile
	a.between("page faults until DEACTIVATE", still[0], got[0], got[0]+5)
	a.do("events", 10)
	if idle := a.values(t, "activity", "probe-1", 4); !slices.Equal(idle, still) {
		t.Errorf("after DEACTIVATE %v, and later %v", still, idle)
	}
	v = valuesOf(t, a.mir(t, "activity", `<ctrlreq action="VALUE"><probe id="probe-3"/></ctrlreq>`))
	t.Logf("in the function, read by the monitor: %v", v)
	a.between("page faults in the function", v[0], 20, 60)
	a.between("migrations in the function", v[1], 2, 60)
	a.control(t, "RESET")
	a.control(t, "ACTIVATE")
	a.do("events", 10)
	a.between("page faults after RESET", a.values(t, "activity", "probe-1", 4)[0], 20, 60)
	a.kill(t)
	a.await(t, a.begin(t))
	a.do("events", 100) // the next gateway begins at 0
	a.between("page faults after the gateway was killed", a.values(t, "activity", "probe-1", 4)[0], 200, 260)
}

// TestMetricsOfAllocations compares the calls and bytes of the allocator with the program's own sums.
func TestMetricsOfAllocations(t *testing.T) {
	a := startActivity(t)
	a.measure("linux:ALLOC_BYTES", "linux:ALLOC_COUNT", "linux:REALLOC_COUNT", "linux:FREE_COUNT")
	own := a.do("allocs", 100)
	v := a.values(t, "activity", "probe-1", 4)
	a.between("ALLOC_BYTES", v[0], own[0], own[0])
	a.between("ALLOC_COUNT + REALLOC_COUNT", v[1]+v[2], own[1], own[1])
	a.between("FREE_COUNT", v[3], 400, 400)
}

// TestMetricsOfLocks compares waiting for locks with the calls that strace shows at the same time, and
// with the program's own count and clock. Waiting for conditions, semaphores and times must not count.
func TestMetricsOfLocks(t *testing.T) {
	a := startActivity(t)
	a.measure("BLOCKED_COUNT", "BLOCKED_TIME", "linux:WAIT_COUNT")
	calls := startStrace(t, a.p.PID, "-e", "trace=futex")
	own := a.do("locks", 40)
	v := a.values(t, "activity", "probe-1", 3)
	waits := regexp.MustCompile(`FUTEX_WAIT(_PRIVATE)?, 2[,)]`).FindAllString(calls(), -1)
	t.Logf("strace %d, own %v, measured %v", len(waits), own, v)
	a.between("BLOCKED_COUNT", v[0], float64(len(waits)), float64(len(waits)))
	a.between("BLOCKED_COUNT", v[0], 1, own[0]+5) // the holder may let go before the other waits
	a.between("BLOCKED_TIME", v[1], 1e-3, own[1]/1e6+5)
	a.between("WAIT_COUNT", v[2], v[0]+40, 1e6) // also the holder's naps
}

// TestLocksAndThreads checks which thread holds a lock that another waits for, and meanwhile the stacks of the threads,
// their number and how long they waited for a processor.
func TestLocksAndThreads(t *testing.T) {
	a := startActivity(t)
	a.p.Tell("locks 1")
	var locks []client.Lock
	for late := time.Now().Add(20 * time.Second); len(locks) == 0 && time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		if err := json.Unmarshal([]byte(a.must(t, "", "locks", "activity", "--json")), &locks); err != nil {
			t.Fatal(err)
		}
	}
	if len(locks) != 1 || locks[0].PID != a.p.PID || locks[0].Holder != a.p.PID || len(locks[0].Waiting) != 1 || locks[0].Waiting[0] == a.p.PID {
		t.Errorf("%+v, want a lock of the first thread, %d", locks, a.p.PID)
	}
	if text := a.must(t, "", "locks", "activity"); !strings.Contains(text, strconv.Itoa(a.p.PID)) {
		t.Error(text)
	}
	a.stacksAgree(t, "activity", a.p.PID)
	var sums []waits // one thread waits all the time
	if err := json.Unmarshal([]byte(a.must(t, "", "locks", "activity", "--for", "100ms", "--json")), &sums); err != nil {
		t.Fatal(err)
	}
	if len(sums) != 1 || sums[0].Address != locks[0].Address || !slices.Equal(sums[0].Holders, []int{a.p.PID}) || sums[0].Seconds < 0.1 {
		t.Errorf("%+v, want 0.1 s of the lock %+v", sums, locks)
	}
	a.measure("THREAD_COUNT", "linux:QUEUED_TIME")
	threads, before := queued(t, a.p.PID)
	v := a.values(t, "activity", "probe-1", 2)
	_, after := queued(t, a.p.PID)
	a.between("THREAD_COUNT", v[0], float64(threads), float64(threads))
	a.between("QUEUED_TIME in nanoseconds", math.Round(v[1]*1e6), before, after)
	a.p.Tell("x")
	a.p.Line()
	if text := a.must(t, "", "locks", "activity", "--json"); strings.TrimSpace(text) != "[]" {
		t.Errorf("after the lock was released: %s", text)
	}
}

// queued returns the number of threads that the kernel lists for a process, and the sum of the times for which
// they waited for a processor, in nanoseconds.
func queued(t *testing.T, pid int) (threads int, ns float64) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(tells(t, "sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/schedstat", pid))), "\n") {
		var ran, delay, slices float64
		if _, err := fmt.Sscan(line, &ran, &delay, &slices); err != nil {
			t.Fatal(err)
		}
		threads, ns = threads+1, ns+delay
	}
	return threads, ns
}

// startStrace traces system calls of a process with all its threads. The returned function ends the
// tracing, and returns what strace wrote.
func startStrace(t *testing.T, pid int, more ...string) func() string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("strace", append(more, "-f", "-o", out, "-p", strconv.Itoa(pid))...)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := sync.OnceFunc(func() { errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) })
	t.Cleanup(done)
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "attached") {
		t.Fatalf("strace: %s%v", line, err)
	}
	return func() string {
		done() // strace ends by the signal
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// control sends a control request for the probe.
func (a *activity) control(t *testing.T, action string) {
	a.mir(t, "activity", `<ctrlreq action="`+action+`"><probe id="probe-1"/></ctrlreq>`)
}

// startPerf counts events of a process by perf stat. The returned function ends perf, and returns the counts.
func startPerf(t *testing.T, pid int, events string) func() []float64 {
	t.Helper()
	dir := t.TempDir()
	control, ack, out := filepath.Join(dir, "control"), filepath.Join(dir, "ack"), filepath.Join(dir, "out")
	tells(t, "mkfifo", control, ack)
	cmd := exec.Command("perf", "stat", "-p", strconv.Itoa(pid), "-x,", "-o", out, "-e", events, "--delay=-1", "--control=fifo:"+control+","+ack)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := sync.OnceValue(func() error {
		return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	})
	t.Cleanup(func() { done() })
	if err := os.WriteFile(control, []byte("enable\n"), 0); err != nil {
		t.Fatal(err)
	}
	answers, err := os.Open(ack) // perf holds it open, too
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	if text, err := bufio.NewReader(answers).ReadString('\n'); !strings.HasPrefix(text, "ack") {
		t.Fatalf("perf answers %q, %v", text, err)
	}
	return func() (counts []float64) {
		done() // perf ends by the signal
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			first, _, found := strings.Cut(line, ",")
			if v, err := strconv.ParseFloat(first, 64); found && err == nil {
				counts = append(counts, v)
			}
		}
		if len(counts) != strings.Count(events, ",")+1 {
			t.Fatalf("perf counted %s", text)
		}
		return counts
	}
}

// TestCatalogNamesWhatIsMissing checks that the catalog and a request say what the kernel answers
// where the processor shows no counters, and that --grep and --available select metrics.
func TestCatalogNamesWhatIsMissing(t *testing.T) {
	a := startActivity(t)
	rows := a.must(t, "", "catalog", "--grep", "papi_tot")
	for _, name := range []string{"PAPI_TOT_CYC", "PAPI_TOT_INS"} {
		if !strings.Contains(rows, name) {
			t.Errorf("no %s in\n%s", name, rows)
		}
	}
	here := perf.Check("cpu-cycles")
	if strings.Contains(rows, "WC_TIME") || strings.Contains(rows, "perf_event_open of cpu-cycles") != (here != nil) {
		t.Errorf("perf_event_open: %v, the catalog says\n%s", here, rows)
	}
	for _, region := range []string{"", `<codeRegion from="activity:touch"/>`} {
		_, answer := a.request(t, "POST", "/apps/activity/mir", `<instrreq activated="true" flush="true">`+region+`<metric name="papi:PAPI_TOT_CYC"/></instrreq>`)
		if refused := strings.Contains(answer, "PAPI_TOT_CYC cannot be measured: perf_event_open of cpu-cycles"); refused != (here != nil) {
			t.Errorf("%s: perf_event_open: %v, the answer is\n%s", region, here, answer)
		}
	}
	rows = a.must(t, "", "catalog", "--available")
	if strings.Contains(rows, "GC_COUNT") || !strings.Contains(rows, "WC_TIME") || strings.Contains(rows, "PAPI_TOT_CYC") != (here == nil) {
		t.Errorf("available are\n%s", rows)
	}
}
