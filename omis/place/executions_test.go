//go:build linux && amd64

package place_test

import (
	"testing"

	"mirador/omis"
	"mirador/omis/monitor/rig"
)

// Marks of the records of an execution.
const (
	countIs = 1 + iota
	entersAt
	lasted
	leavesAt
)

// TestRecordsOfExecutions checks in all placements that records have what a counter and a timer measure at each
// execution, and that stack pointers pair entries with exits.
func TestRecordsOfExecutions(t *testing.T) {
	scenes := rig.Scenes(t)
	for _, s := range []struct {
		name, function string
		do             func(*rig.Monitor)
		ended, left    int // executions that return, and those that an exception leaves
	}{
		{"calls", "work", commands("call 500"), 500, 0},
		{"four threads", "work", commands("together 4 300"), 1200, 0},
		{"recursion", "recurse", commands("recurse 60", "recurse 0"), 62, 0},
		{"exceptions", "throwing", commands("throw 7 4"), 0, 32},
	} {
		for _, placement := range placements {
			t.Run(s.name+"/"+placement, func(t *testing.T) {
				g := rig.Start(t, scenes)
				r := newRig(t, placement, g)
				r.Ask(": pa_counter_create() pa_timer_create() pa_trace_create(8192)")
				r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1) pa_trace_last([pa_b_1],%d) pa_trace_stack([pa_b_1],%d) pa_timer_start([pa_t_1])",
					g.Func[s.function], countIs, entersAt)
				for _, exit := range g.Exits(s.function) {
					r.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1]) pa_trace_last([pa_b_1],%d) pa_trace_stack([pa_b_1],%d)", exit, lasted, leavesAt)
				}
				r.Enable()
				r.RunsIn(placement)
				s.do(r)
				checkExecutions(r, s.ended, s.left)
			})
		}
	}
}

// executed is what the records of one thread say.
type executed struct {
	entered int64
	open    []int64 // stack pointers
}

func checkExecutions(r *rig.Monitor, ended, left int) {
	t := r.T
	t.Helper()
	reply := r.Ask(": pa_trace_read([pa_b_1],0) pa_timer_exact([pa_t_1],2)")
	values := reply[1][0].Values
	if values[0].N != 0 {
		t.Fatalf("%d records are lost", values[0].N)
	}
	threads := make(map[omis.Token]*executed)
	var sum, closed, paired int64
	for list := values[2].List; len(list) > 0; list = list[5:] {
		th := threads[list[1].Token()]
		if th == nil {
			th = &executed{}
			threads[list[1].Token()] = th
		}
		mark, _ := list[3].Int64()
		v, _ := list[4].Int64()
		switch mark {
		case countIs:
			if th.entered++; v != th.entered {
				t.Fatalf("execution %d of %s has the count %d", th.entered, list[1].Token(), v)
			}
		case entersAt:
			th.open = append(th.open, v)
		case lasted:
			closed, sum = closed+1, sum+v
		case leavesAt:
			for n := len(th.open); n > 0 && th.open[n-1] < v; n = len(th.open) {
				th.open = th.open[:n-1]
			}
			if n := len(th.open); n > 0 && th.open[n-1] == v {
				th.open, paired = th.open[:n-1], paired+1
			}
		}
	}
	if closed != int64(ended) || paired != int64(ended) {
		t.Errorf("%d durations and %d pairs of %d executions", closed, paired, ended)
	}
	var entered int64
	for _, th := range threads {
		entered += th.entered
	}
	if entered != int64(ended+left) {
		t.Errorf("%d executions began, want %d", entered, ended+left)
	}
	if ended == 0 {
		return
	}
	total, _ := reply[2][0].Values[1].List[5].Int64()
	if off := total - sum; off < -closed || off > closed {
		t.Errorf("the durations add up to %d ns, the timer has %d", sum, total)
	}
}
