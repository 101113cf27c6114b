//go:build linux && amd64

package place_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// Marks of the records at the entry and at the exits of a function.
const (
	begins = 1
	leaves = -2
)

// traces appends a record to a trace at each entry and exit of a function.
func traces(r *rig.Monitor, function string, room int) {
	r.T.Helper()
	tracesAt(r, room, r.Target.Func[function], r.Target.Exits(function))
}

// tracesAt does the same for a function with the given addresses.
func tracesAt(r *rig.Monitor, room int, begin uint64, exits []uint64) {
	r.T.Helper()
	r.Ask(": pa_trace_create(%d)", room)
	r.Define("thread_reached_addr([],%#x) : pa_trace_add([pa_b_1],%d)", begin, begins)
	for _, exit := range exits {
		r.Define("thread_reached_addr([],%#x) : pa_trace_add2([pa_b_1],%d,%d)", exit, leaves, int64(-1)<<40)
	}
	r.Enable()
}

// traced summarises the records of a trace.
type traced struct {
	lost   uint64                 // number of lost records
	all    int                    // number of records
	last   float64                // time of the last record
	open   map[omis.Token]int     // entries minus exits of each thread
	counts map[omis.Token]*[2]int // entries and exits of each thread
}

// readTrace reads a trace until it is empty, and checks the order of the records.
func readTrace(r *rig.Monitor) *traced {
	r.T.Helper()
	in := &traced{open: make(map[omis.Token]int), counts: make(map[omis.Token]*[2]int)}
	for {
		values := r.Ask(": pa_trace_read([pa_b_1],10000)")[1][0].Values
		in.lost += values[0].N
		last := 0.0
		for list := values[2].List; len(list) > 0; list = list[5:] {
			if in.take(r.T, list[1].Token(), list[3], list[4]); list[2].Float < last {
				r.T.Fatalf("a record with the time %g follows one with %g", list[2].Float, last)
			}
			last, in.last = list[2].Float, list[2].Float
		}
		if values[1].N == 0 {
			return in
		}
	}
}

// take adds a record, and checks that each exit of a thread follows an entry unless records were lost.
func (in *traced) take(t testing.TB, thread omis.Token, mark, value omis.Value) {
	t.Helper()
	if in.counts[thread] == nil {
		in.counts[thread] = new([2]int)
	}
	in.all++
	m, _ := mark.Int64()
	v, _ := value.Int64()
	switch {
	case m == begins && v == 0:
		in.open[thread]++
		in.counts[thread][0]++
	case m == leaves && v == -1<<40:
		in.open[thread]--
		in.counts[thread][1]++
	default:
		t.Fatalf("a record has the mark %d and the value %d", m, v)
	}
	if in.open[thread] < 0 && in.lost == 0 {
		t.Fatalf("%s has more exits than entries", thread)
	}
}

// String returns "threads×entries/exits" for each different pair of counts.
func (in *traced) String() string {
	times := make(map[[2]int]int)
	for _, n := range in.counts {
		times[*n]++
	}
	var list []string
	for n, threads := range times {
		list = append(list, fmt.Sprintf("%d×%d/%d", threads, n[0], n[1]))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestTraces checks that the records of a trace do not depend on the placement.
func TestTraces(t *testing.T) {
	program := rig.Scenes(t)
	for _, s := range []struct {
		name, function string
		room           int
		do             func(*rig.Monitor)
		want           string
		lost           uint64
	}{
		{"calls", "work", 2048, commands("call 1000"), "1×1000/1000", 0},
		{"a trace that is full", "work", 2048, commands("call 2000"), "1×1024/1024", 4000 - 2048},
		{"four threads", "work", 8192, commands("together 4 1000"), "4×1000/1000", 0},
		{"threads that come and go", "work", 2048, commands("onebyone 100 5"), "100×5/5", 0},
		{"recursion", "recurse", 2048, commands("recurse 60", "recurse 0"), "1×62/62", 0},
		{"exceptions", "throwing", 2048, commands("throw 7 4"), "1×32/0", 0},
		{"fork", "work", 2048, commands("fork 50", "call 10"), "1×10/10", 0},
		{"exec", "work", 2048, execAgain, "1×10/10", 0},
		{"disabled in between", "work", 2048, disableBetween, "1×30/30", 0},
		{"deleted", "work", 2048, deleteAll, "1×10/10", 0},
	} {
		for _, placement := range placements {
			t.Run(s.name+"/"+placement, func(t *testing.T) {
				g, opened := rig.Start(t, program), time.Now()
				r := newRig(t, placement, g)
				traces(r, s.function, s.room)
				r.RunsIn(placement)
				s.do(r)
				got := readTrace(r)
				if got.String() != s.want || got.lost != s.lost {
					t.Errorf("%s, %d lost, want %s, %d lost", got, got.lost, s.want, s.lost)
				}
				if got.last <= 0 || got.last > time.Since(opened).Seconds() {
					t.Errorf("the last record has the time %g, but the node's clock began only %v ago", got.last, time.Since(opened))
				}
				if again := readTrace(r); again.all != 0 || again.lost != 0 {
					t.Errorf("reading again returns %s, %d lost", again, again.lost)
				}
			})
		}
	}
}

// placements lists all placements.
var placements = []string{"trap", inline.Name, kernel.Name}

// TestTracesReadMeanwhile checks that each record is read once or reported as lost while threads append more
// records than the trace can hold.
func TestTracesReadMeanwhile(t *testing.T) {
	const threads = 4
	program := rig.Scenes(t)
	for placement, calls := range map[string]int{inline.Name: 20_000, kernel.Name: 2_000} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			traces(r, "work", 1)
			r.Target.Tell("together %d %d", threads, calls)
			answered := make(chan string)
			go func() { answered <- r.Target.Line() }()
			var all, lost int
			for running := true; running; {
				select {
				case <-answered:
					running = false
				default:
				}
				in := r.Ask(": pa_trace_read([pa_b_1],0)")[1][0].Values
				lost, all = lost+int(in[0].N), all+int(in[1].N)
			}
			in := readTrace(r)
			if n := all + in.all + lost + int(in.lost); n != 2*threads*calls {
				t.Errorf("%d read, %d lost, of %d", all+in.all, lost+int(in.lost), 2*threads*calls)
			}
		})
	}
}

// tracerEnv is an environment variable that makes the test binary a monitor that traces until it is killed. Its
// value is a pid, a placement, and the addresses of a function's entry and exits.
const tracerEnv = "MIRADOR_TEST_TRACER"

// timing precedes the addresses in tracerEnv if the monitor must time the function instead, placing if it must record
// where on the stack the function is executed.
const (
	timing  = "timing"
	placing = "placing"
)

// timeUntilKilled times a function, and reads the timer all the time.
func timeUntilKilled(ask func(string) error, addrs []string) error {
	err := ask(": pa_timer_create()")
	for i, addr := range addrs {
		action := "stop"
		if i == 0 {
			action = "start"
		}
		err = errors.Join(err, ask(fmt.Sprintf("thread_reached_addr([],%s) : pa_timer_%s([pa_t_1])", addr, action)))
	}
	err = errors.Join(err, ask(": csr_enable([])"))
	for fmt.Println("tracing"); err == nil; {
		err = ask(": pa_timer_read([pa_t_1])")
	}
	return err
}

// traceUntilKilled runs the monitor that tracerEnv describes, and reads the trace all the time.
func traceUntilKilled(what string) error {
	words := strings.Fields(what)
	m, err := monitor.Open(monitor.Config{Linux: linux.Config{Name: "here"}, Placers: func(n *linux.Node) []program.Placer {
		switch {
		case words[1] == kernel.Name:
			return []program.Placer{kernel.New([]string{os.Args[0], asRegistrar})}
		case words[1] == inline.Name:
			return []program.Placer{inline.New(n)}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	ask := func(request string) error {
		reply, err := m.Engine.Tool("test").Request(context.Background(), request, nil, 0)
		return errors.Join(err, reply.Err())
	}
	if err := ask(fmt.Sprintf(`: proc_attach3([],%s,"") pa_trace_create(1)`, words[0])); err != nil {
		return err
	}
	if words[2] == timing {
		return timeUntilKilled(ask, words[3:])
	}
	addrs, action := words[2:], "add"
	if words[2] == placing {
		addrs, action = words[3:], "stack"
	}
	for _, addr := range addrs {
		if err := ask(fmt.Sprintf("thread_reached_addr([],%s) : pa_trace_%s([pa_b_1],1)", addr, action)); err != nil {
			return err
		}
	}
	if err := ask(": csr_enable([])"); err != nil {
		return err
	}
	for fmt.Println("tracing"); err == nil; {
		err = ask(": pa_trace_read([pa_b_1],0)")
	}
	return err
}

// TestMonitorKilledWhileTracing checks that the target continues when the monitor that traces it is killed, and
// that a trace of the next monitor is complete.
func TestMonitorKilledWhileTracing(t *testing.T) {
	for _, placement := range placements[1:] {
		t.Run(placement, func(t *testing.T) { killWhileTracing(t, placement) })
	}
}

// tracer is the process of a monitor that a test kills.
type tracer struct {
	*exec.Cmd
	t *testing.T
}

// startTracer starts a monitor with tracerEnv, and waits until it measures.
func startTracer(t *testing.T, what string) tracer {
	t.Helper()
	cmd := exec.Command(self(t))
	cmd.Env = append(os.Environ(), tracerEnv+"="+what)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "tracing\n" {
		t.Errorf("the monitor wrote %q (%v)", said, err)
	}
	return tracer{cmd, t}
}

func (r tracer) kill() {
	r.t.Helper()
	if err := r.Process.Kill(); err != nil {
		r.t.Error(err)
	}
	_ = r.Wait() // it was killed
}

func killWhileTracing(t *testing.T, placement string) {
	g := rig.Start(t, rig.Scenes(t))
	exits := g.Exits("work")
	what := fmt.Sprintf("%d %s %#x", g.ID.PID, placement, g.Func["work"])
	for _, exit := range exits {
		what += fmt.Sprintf(" %#x", exit)
	}
	before := g.Code(g.Func["work"], g.Size["work"])
	for range 3 {
		tracer := startTracer(t, what)
		g.Tell("together 4 5000")
		tracer.kill()
		if got := g.Line(); !strings.HasPrefix(got, "done") {
			t.Errorf("the target answered %q", got)
		}
		g.Do("call 1000")
	}
	if placement == kernel.Name {
		rig.Until(t, "the code has its original bytes", func() bool { return bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) })
	}
	r := newRig(t, placement, g)
	tracesAt(r, 2048, g.Func["work"], exits)
	g.Do("call 1000")
	if got := readTrace(r); got.String() != "1×1000/1000" || got.lost != 0 {
		t.Errorf("the next monitor traced %s, %d lost", got, got.lost)
	}
}
