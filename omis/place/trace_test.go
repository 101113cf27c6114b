//go:build linux && amd64

package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/place/inline"
	"mirador/omis/place/rig"
)

// Marks of where a function begins and is left.
const (
	begins = 1
	leaves = -2
)

// traces has a trace remember when a function begins and is left.
func traces(r *rig.Monitor, function string, room int) {
	r.T.Helper()
	r.Ask(": pa_trace_create(%d)", room)
	r.Define("thread_reached_addr([],%#x) : pa_trace_add([pa_b_1],%d)", r.Target.Func[function], begins)
	for _, exit := range r.Target.Exits(function) {
		r.Define("thread_reached_addr([],%#x) : pa_trace_add2([pa_b_1],%d,%d)", exit, leaves, int64(-1)<<40)
	}
	r.Enable()
}

// traced is what a trace tells: how many records were lost, and of each thread how many
// calls of the function began and ended, as often as there are such.
type traced struct {
	lost   uint64
	all    int
	open   map[omis.Token]int
	counts map[omis.Token]*[2]int
}

// readTrace reads a trace until there is no more in it, and checks its order.
func readTrace(r *rig.Monitor) *traced {
	r.T.Helper()
	in := &traced{open: make(map[omis.Token]int), counts: make(map[omis.Token]*[2]int)}
	for {
		values := r.Ask(": pa_trace_read([pa_b_1],10000)")[1][0].Values
		in.lost += values[0].N
		last := 0.0
		for list := values[2].List; len(list) > 0; list = list[5:] {
			if in.take(r.T, list[1].Token(), list[3], list[4]); list[2].Float < last {
				r.T.Fatalf("a record of %g comes after one of %g", list[2].Float, last)
			}
			last = list[2].Float
		}
		if values[1].N == 0 {
			return in
		}
	}
}

// take takes a record. A function is left after it began.
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
		t.Fatalf("%s leaves the function more often than it began", thread)
	}
}

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

// What a trace has does not depend on where its records are appended.
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
				r := newRig(t, placement, rig.Start(t, program))
				traces(r, s.function, s.room)
				if got := r.Where(); got != placement {
					t.Fatalf("the requests run in %s", got)
				}
				s.do(r)
				if got := readTrace(r); got.String() != s.want || got.lost != s.lost {
					t.Errorf("%s, %d lost, want %s, %d lost", got, got.lost, s.want, s.lost)
				}
				if again := readTrace(r); again.all != 0 || again.lost != 0 {
					t.Errorf("read once more: %s, %d lost", again, again.lost)
				}
			})
		}
	}
}

// placements are where records are appended.
var placements = []string{"trap", inline.Name}

// Each record is read once, or told to be lost, also while threads leave more of them than
// there is room for.
func TestTracesReadMeanwhile(t *testing.T) {
	const threads, calls = 4, 20_000
	program := rig.Scenes(t)
	for _, placement := range placements[1:] {
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
