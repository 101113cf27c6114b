package translate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
	"mirador/omis"
	"mirador/sir"
)

// timings are measured durations by thread, in nanoseconds.
type timings map[omis.Token][]int64

// reply returns the durations as pa_timer_read does, in seconds.
func (ts timings) reply(threads []omis.Token) omis.Reply {
	var list []omis.Value
	for _, thread := range threads {
		var s Stats
		for _, ns := range ts[thread] {
			s.Add(float64(ns) / 1e9)
		}
		list = append(list, omis.TokenValue("p_1"), omis.TokenValue(thread), omis.Int(s.N), omis.Float(s.Last),
			omis.Float(s.Sum), omis.Float(s.Squares+s.Sum*s.Mean), omis.Float(s.Min), omis.Float(s.Max), omis.Int(0))
	}
	answer := omis.ObjectResult{Objects: []omis.Token{"pa_t_1"}, Values: []omis.Value{omis.Int(int64(len(threads))), omis.List(list...)}}
	return omis.Reply{{{}}, {answer}}
}

// oneProcess returns a process with threads t_1, t_2 … and a unit called work.
func oneProcess(threads int) (*Targets, []omis.Token) {
	p := Process{Token: "p_1", Modules: []Module{{
		Program: &sir.Program{Units: []sir.Unit{{ID: "f.1", Name: "work", Entry: 0x10}}},
		Exits:   func(sir.Unit) ([]uint64, error) { return []uint64{0x20}, nil },
	}}}
	var tokens []omis.Token
	for i := range threads {
		tokens = append(tokens, omis.Token(fmt.Sprintf("t_%d", i+1)))
		p.Threads = append(p.Threads, Thread{Token: tokens[i], Master: i == 0})
	}
	return &Targets{Node: Node{"n_1", "here"}, Processes: []Process{p}}, tokens
}

// TestStatisticsOfTimes checks that statistics in a document are those of the measured
// durations, and that minimum and maximum name the right thread.
func TestStatisticsOfTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		targets, threads := oneProcess(rapid.IntRange(1, 5).Draw(t, "threads"))
		measured := make(timings)
		var all []float64
		for _, thread := range threads {
			for range rapid.IntRange(0, 6).Draw(t, "executions") {
				ns := rapid.Int64Range(0, 1e10).Draw(t, "ns")
				measured[thread] = append(measured[thread], ns)
				all = append(all, float64(ns)/1e6)
			}
		}
		request := &mir.InstrRequest{
			Region: &mir.CodeRegion{From: "f.1"}, Metrics: []mir.Metric{{Name: "WC_TIME"}},
			Measuring: &mir.Measuring{Aggregates: everyFunction()[1:]},
		}
		plan, err := Instrument(request, targets)
		if err != nil {
			t.Fatal(err)
		}
		vs, err := plan.Values(measured.reply(threads), Handles{Timer: "pa_t_1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, tuple := range plan.tuples(vs) {
			checkStatistic(t, request.Measuring.Aggregates[tuple.Function], tuple, measured, all)
		}
	})
}

func checkStatistic(t *rapid.T, f mir.Function, tuple mir.Tuple, measured timings, all []float64) {
	if len(all) == 0 {
		if tuple.Value != "" {
			t.Fatalf("%s without values is %s", f, tuple.Value)
		}
		return
	}
	got, err := strconv.ParseFloat(tuple.Value, 64)
	if err != nil {
		t.Fatal(err)
	}
	want, squares := naive(f, all), 0.0
	for _, v := range all {
		squares += v * v
	}
	if math.Abs(got-want) > 1e-5+1e-9*squares {
		t.Fatalf("%s is %v, want %v", f, got, want)
	}
	if f != mir.Maximum && f != mir.Minimum {
		if tuple.ThreadID != "" || tuple.ProcessID != "" {
			t.Fatalf("%s names thread %q of process %q", f, tuple.ThreadID, tuple.ProcessID)
		}
		return
	}
	if !slices.ContainsFunc(measured[omis.Token(tuple.ThreadID)], func(ns int64) bool { return math.Abs(float64(ns)/1e6-got) < 1e-5 }) {
		t.Fatalf("%s %v names thread %q, which measured %v", f, got, tuple.ThreadID, measured[omis.Token(tuple.ThreadID)])
	}
}

// TestTokensOfAnEvent checks that the tokens of an event contain every requested process and
// thread, and none twice (OMIS 7.2.3).
func TestTokensOfAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		targets, threads := oneProcess(4)
		request := &mir.InstrRequest{Region: &mir.CodeRegion{From: "work"}, Metrics: []mir.Metric{{Name: "COUNT"}}}
		whole := false
		for range rapid.IntRange(1, 6).Draw(t, "entities") {
			i := rapid.IntRange(-2, len(threads)-1).Draw(t, "entity")
			switch {
			case i >= 0:
				request.Entities = append(request.Entities, mir.Entity{Kind: mir.Thread, ID: string(threads[i])})
			case i == -1:
				request.Entities = append(request.Entities, mir.Entity{Kind: mir.Process, ID: "p_1"})
				whole = true
			default:
				request.Entities = append(request.Entities, mir.Entity{Kind: mir.Thread, ID: "?"})
				whole = true
			}
		}
		plan, err := Instrument(request, targets)
		if err != nil {
			t.Fatal(err)
		}
		tokens := plan.watched(plan.Places[0])
		if whole != slices.Equal(tokens, []omis.Token{"p_1"}) {
			t.Fatalf("%v for %+v", tokens, request.Entities)
		}
		slices.SortFunc(tokens, compare)
		if len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
			t.Fatalf("a token appears twice: %v", tokens)
		}
	})
}

// TestMalformedReplies checks that any reply gives values or an error. Replies come from
// another process, and may come from another machine.
func TestMalformedReplies(t *testing.T) {
	targets, _ := oneProcess(2)
	request := &mir.InstrRequest{
		Region: &mir.CodeRegion{From: "work"}, Metrics: []mir.Metric{{Name: "COUNT"}, {Name: "WC_TIME"}}, Percentiles: []float64{50},
	}
	plan, err := Instrument(request, targets)
	if err != nil {
		t.Fatal(err)
	}
	value := rapid.SampledFrom([]omis.Value{
		{}, omis.Int(-1), omis.Int(3), omis.Float(math.NaN()), omis.String("x"), omis.List(), omis.List(omis.Int(1)),
		omis.List(omis.TokenValue("p_1"), omis.TokenValue("t_1"), omis.String("x")), omis.TokenValue("_"),
		omis.List(omis.TokenValue("p_1"), omis.TokenValue("t_1"), omis.Int(1), omis.List(omis.Float(2), omis.Float(1), omis.Int(1), omis.String("x"))),
	})
	rapid.Check(t, func(t *rapid.T) {
		reply := make(omis.Reply, rapid.IntRange(0, 4).Draw(t, "services"))
		for i := range reply {
			for range rapid.IntRange(0, 3).Draw(t, "results") {
				reply[i] = append(reply[i], omis.ObjectResult{
					Objects: rapid.SliceOfN(rapid.SampledFrom([]omis.Token{"", "p_1", "t_1", "t_"}), 0, 2).Draw(t, "objects"),
					Status:  rapid.SampledFrom([]omis.Status{omis.OK, omis.CSRDefined, omis.UnknownObject, omis.OSError}).Draw(t, "status"),
					Values:  rapid.SliceOfN(value, 0, 3).Draw(t, "values"),
				})
			}
		}
		if vs, err := plan.Values(reply, Handles{Counter: "pa_c_1", Timer: "pa_t_1"}); err == nil {
			Document([]Reading{{Plan: plan, Values: vs}})
		}
		NewSnapshot(&mir.SnapshotRequest{Named: true, Stack: 2}, Node{Token: "n_1"}).Read(reply, func(omis.Token, uint64, bool) string { return "" }, nil)
		plan.Bind(reply)
		Defined(reply)
	})
}
