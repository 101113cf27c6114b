package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var executionLine = regexp.MustCompile(`number="(\d+)" lost="(\d+)"\?><measurement value="(\d+)"(?: xmlns:gateway="urn:mirador:gateway" gateway:lost="(\d+|unknown)")?/>`)

// TestExecutionsThroughKills kills gateways that deliver every execution of a function to a file.
// The file has each execution, in their order, or says that some are lost.
func TestExecutionsThroughKills(t *testing.T) {
	s := startServe(t, 0, "--deliver", "file:///")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	path := filepath.Join(s.dir, "executions")
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:nap"/><metric name="COUNT"/><measuring delivery="-1" destination="file://`+path+`"/><process id="p_1"/></instrreq>`)
	const kills, naps = 5, 200
	arrives := func(count int) {
		eventually(t, fmt.Sprintf("execution %d is in the file", count), func() bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(text), fmt.Sprintf("value=%q", strconv.Itoa(count)))
		})
	}
	for round := range kills {
		for range naps {
			c.says("nap 0")
		}
		if round%2 == 0 {
			arrives((round + 1) * naps)
		}
		s.kill(t)
		s.await(t, s.begin(t))
	}
	c.says("nap 0")
	const total = kills*naps + 1
	if counted := s.value(t, "probe-1").Value; counted != strconv.Itoa(total) {
		t.Errorf("%s of %d executions are counted", counted, total)
	}
	s.must(t, "", "probe", "rm", "probe-1")
	arrives(total)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkExecutions(t, string(text))
	s.must(t, "", "release", "tally")
}

// checkExecutions checks that no number of a document is missing, and that executions are missing
// only where the next document says so.
func checkExecutions(t *testing.T, text string) {
	t.Helper()
	number, count, unknown := 0, 0, 0
	for _, m := range executionLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits, like the others
		documents, _ := strconv.Atoi(m[2])
		value, _ := strconv.Atoi(m[3])
		lost, _ := strconv.Atoi(m[4])
		if n <= number {
			continue // delivered again
		}
		if m[4] == "unknown" {
			unknown++
		}
		if n != number+documents+1 || value <= count || m[4] != "unknown" && value != count+documents+lost+1 {
			t.Fatalf("document %d with the count %d follows %d with %d; %d documents and %q executions are lost", n, value, number, count, documents, m[4])
		}
		number, count = n, value
	}
	t.Logf("%d documents of %d executions, %d losses of unknown size", number, count, unknown)
	if number < 100 || unknown == 0 {
		t.Errorf("%d documents, %d losses of unknown size", number, unknown)
	}
}

// recordsIn reads the documents in a file that contains a word: what happened, and the values.
func recordsIn(t *testing.T, path, word string) (list []string) {
	t.Helper()
	eventually(t, path+" has "+word, func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		list = nil
		for _, d := range strings.Split(string(text), "<?mirador ")[1:] {
			var what []string
			for _, m := range recordedPart.FindAllStringSubmatch(d, -1) {
				what = append(what, m[1]+m[2])
			}
			list = append(list, strings.Join(what, " "))
		}
		return len(list) > 0 && strings.Contains(strings.Join(list, ", "), word)
	})
	return list
}

var recordedPart = regexp.MustCompile(`gateway:event="(\w+)"| value="(\w+)"`)

// TestRecordsOfEnds checks records of a level, which the program reads itself, and of a region from one function to
// another, at whose ends the program makes a known number of system calls. The gateway is killed in between.
func TestRecordsOfEnds(t *testing.T) {
	s := startServe(t, os.Geteuid())
	g := startGains(t)
	s.must(t, "", "attach", "--app", "gains", strconv.Itoa(g.PID))
	file := func(name string) string { return filepath.Join(s.dir, name) }
	for name, what := range map[string]string{
		"levels":  `<codeRegion from="gains:grows" to="gains:grows"/><metric name="HEAP_MEM_USAGE"/><event/>`,
		"each":    `<codeRegion from="gains:opens" to="gains:closes"/><metric name="SYSCALL_COUNT:getppid"/>`,
		"crossed": `<codeRegion from="gains:opens" to="gains:closes"/><event/>`,
	} {
		s.mir(t, "gains", `<instrreq activated="true" flush="true">`+what+`<measuring delivery="-1" destination="file://`+file(name)+`"/><process id="*"/></instrreq>`)
	}
	var levels []string
	grow := func(size int) {
		var before, after int
		g.Tell("grow %d", size)
		if _, err := fmt.Sscanf(g.Line(), "done %d %d", &before, &after); err != nil {
			t.Fatal(err)
		}
		levels = append(levels, fmt.Sprint(before, " enter"), fmt.Sprint(after, " leave"))
	}
	crosses := 0
	work := func(sizes ...int) {
		for _, size := range sizes {
			grow(size)
		}
		g.Tell("cross 1 2")
		g.Line()
		crosses += 2
	}
	check := func(when string) {
		t.Helper()
		if got := recordsIn(t, file("levels"), levels[len(levels)-1]); !slices.Equal(got, levels) {
			t.Errorf("%s: %v, want %v", when, got, levels)
		}
		s.mir(t, "gains", `<ctrlreq action="VALUE"><probe id="probe-1"/><probe id="probe-2"/><probe id="probe-3"/></ctrlreq>`)
		each, crossed := "5, 3, ", "enter, leave, unmatched, enter, abandon, enter, leave, "
		for name, want := range map[string]string{"each": each, "crossed": crossed} {
			all := strings.TrimSuffix(strings.Repeat(want, crosses), ", ")
			if got := strings.Join(recordsIn(t, file(name), all), ", "); got != all {
				t.Errorf("%s: %s, want %s", when, got, all)
			}
		}
	}
	work(100, 2_000_000, 10)
	check("before")
	s.kill(t)
	g.Tell("cross 1 2")
	g.Line()
	s.await(t, s.begin(t))
	for _, name := range []string{"levels", "each", "crossed"} {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	levels, crosses = nil, 0
	work(50_000)
	check("after the kill")
	s.must(t, "", "release", "gains")
}

// TestTraceOfTarget checks a trace against a program that takes the times of its calls itself.
func TestTraceOfTarget(t *testing.T) {
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:nap"/><metric name="COUNT"/><metric name="WC_TIME"/><event/></instrreq>`)
	began := monotonicNow()
	const naps, ms = 5, 5
	var took []int // nanoseconds
	for range naps {
		took = append(took, c.says("nap "+strconv.Itoa(ms)))
	}
	_, text := s.request(t, "GET", "/probes/probe-1/trace?for=1s", "")
	var all []struct {
		Ph       string
		Ts       float64
		PID, TID int
		Args     map[string]any
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err, text)
	}
	var begins []int64
	left := 0
	for _, e := range all {
		at := int64(e.Ts * 1e3)
		switch e.Ph {
		case "B":
			begins = append(begins, at)
			if at < began || at > monotonicNow() || e.PID != c.PID || e.TID != c.PID || e.Args["COUNT"] != float64(len(begins)) {
				t.Errorf("after %d ns: %+v", began, e)
			}
		case "E":
			lasted, _ := e.Args["WC_TIME"].(float64)
			if d := at - begins[left]; d < ms*1e6 || d > int64(took[left]) || lasted < ms || lasted > float64(took[left])/1e6 {
				t.Errorf("a call of %d ns took %d ns by the trace, %v ms by the timer", took[left], d, lasted)
			}
			left++
		case "i":
			t.Errorf("an instant: %+v", e)
		}
	}
	if len(begins) != naps || left != naps {
		t.Errorf("%d calls: %d are entered, %d are left: %s", naps, len(begins), left, text)
	}
	s.must(t, "", "release", "tally")
	traceOfGoroutines(t, s)
}

// traceOfGoroutines checks a trace against a program in Go, whose goroutines leave a function on other threads than
// they enter it. Each goroutine has a track of its own.
func traceOfGoroutines(t *testing.T, s *served) {
	pid, tell, line := startGo(t, "../omis/place/testdata/goroutines")
	s.must(t, "", "attach", "--app", "go", strconv.Itoa(pid))
	s.mir(t, "go", `<instrreq activated="true" flush="true"><codeRegion from="main.sleeps"/><metric name="WC_TIME"/><event/></instrreq>`)
	tell("sleep 200")
	var calls, returns, inside, outside float64
	if _, err := fmt.Sscan(line(), &calls, &returns, &inside, &outside); err != nil {
		t.Fatal(err)
	}
	_, text := s.request(t, "GET", "/probes/probe-2/trace?for=1s", "")
	var all []struct {
		Ph   string
		Ts   float64
		TID  int
		Args struct {
			Thread int     `json:"thread"`
			Time   float64 `json:"WC_TIME"`
		}
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err, text)
	}
	var begun, ended, sum, timed float64
	threads := make(map[int]bool)
	for _, e := range all {
		switch e.Ph {
		case "B":
			begun, sum = begun+1, sum-e.Ts*1e3
			threads[e.Args.Thread] = true
		case "E":
			ended, sum, timed = ended+1, sum+e.Ts*1e3, timed+e.Args.Time*1e6
		case "i":
			t.Errorf("an instant: %+v", e)
		}
	}
	if begun != calls || ended != returns || sum < 0.95*inside || sum > 1.05*outside || timed < 0.95*inside || timed > 1.05*outside || threads[0] {
		t.Errorf("%v are entered, %v are left, %v ns in all, %v by the timer, on %v; want %v, %v, and %v to %v ns", begun, ended, sum, timed, threads, calls, returns, inside, outside)
	}
	s.must(t, "", "release", "go")
}

// monotonicNow reads the kernel's monotonic clock.
func monotonicNow() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // this clock exists
	return ts.Nano()
}
