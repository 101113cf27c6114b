package translate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/program"
	"mirador/sir"
)

// timings are measured durations by thread, in nanoseconds.
type timings map[omis.Token][]int64

// reply returns the durations as the service that the request calls does: pa_timer_exact in
// whole nanoseconds, pa_timer_read in seconds.
func (ts timings) reply(request string, threads []omis.Token) omis.Reply {
	exact := strings.HasPrefix(request, ": pa_timer_exact(")
	var list []omis.Value
	for _, thread := range threads {
		var i program.Intervals
		for _, ns := range ts[thread] {
			n := uint64(ns)
			i.Count, i.Last, i.Max = i.Count+1, n, max(i.Max, n)
			if i.Count == 1 || n < i.Min {
				i.Min = n
			}
			i.Sum, i.Squares = i.Sum.Add(program.Uint128{Lo: n}), i.Squares.Add(program.Uint128{Lo: n}.Times(n))
		}
		list = append(list, omis.TokenValue("p_1"), omis.TokenValue(thread), omis.Int(i.Count))
		if exact {
			list = append(list, omis.Uint(i.Last), omis.Uint(i.Sum.Hi), omis.Uint(i.Sum.Lo),
				omis.Uint(i.Squares.Hi), omis.Uint(i.Squares.Lo), omis.Uint(i.Min), omis.Uint(i.Max), omis.Int(0))
			continue
		}
		seconds := func(ns uint64) omis.Value { return omis.Float(float64(ns) / 1e9) }
		list = append(list, seconds(i.Last), omis.Float(i.Sum.Float()/1e9), omis.Float(i.Squares.Float()/1e18),
			seconds(i.Min), seconds(i.Max), omis.Int(0))
	}
	answer := omis.ObjectResult{Objects: []omis.Token{"pa_t_1"}, Values: []omis.Value{omis.Int(int64(len(threads))), omis.List(list...)}}
	return omis.Reply{{{}}, {answer}}
}

// located is a Locator with the same places for every region.
type located struct {
	entries, exits []uint64
	err            error
}

func (l *located) Entries(*sir.Region) ([]uint64, error) { return l.entries, l.err }
func (l *located) Exits(*sir.Region) ([]uint64, error)   { return l.exits, l.err }

// oneProcess returns a process with threads t_1, t_2 … and a unit called work.
func oneProcess(threads int) (*Targets, []omis.Token) {
	program := &sir.Program{Regions: []sir.Region{{ID: "f.1", Name: "work", Entry: 0x10}}}
	p := Process{Token: "p_1", Modules: []Module{{
		Units: sir.NewIndex(program), Locator: &located{entries: []uint64{0x10}, exits: []uint64{0x20}},
	}}}
	var tokens []omis.Token
	for i := range threads {
		tokens = append(tokens, omis.Token(fmt.Sprintf("t_%d", i+1)))
		p.Threads = append(p.Threads, Thread{Token: tokens[i], Master: i == 0})
	}
	return &Targets{Node: Node{Token: "n_1", Name: "here"}, Processes: []Process{p}}, tokens
}

// TestStatisticsOfTimes checks that a document has the statistics of the measured durations,
// and that minimum and maximum name the right thread.
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
		timer := Handles{Timer: "pa_t_1"}
		vs, err := plan.Values(measured.reply(plan.Read(timer), threads), timer)
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
	if want := naive(f, all); math.Abs(got-want) > 1e-6+1e-9*math.Abs(want) {
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

// TestVarianceOfLongTimes checks the variance of durations that differ by less than the
// rounding of their squares, within a thread and between threads.
func TestVarianceOfLongTimes(t *testing.T) {
	const long = 36_000_000_000 // ns
	for name, c := range map[string]struct {
		measured timings
		want     string // in ms²
	}{
		"in a thread":      {timings{"t_1": {long - 500, long + 500}}, "0.00000025"},
		"between threads":  {timings{"t_1": {long - 500}, "t_2": {long + 500}}, "0.00000025"},
		"of three threads": {timings{"t_1": {long, long + 1}, "t_2": {long - 1}, "t_3": {long}}, "0.0000000000005"},
		"of a century":     {timings{"t_1": {3e18, 3e18 + 2000}}, "0.000001"},
		"none":             {timings{"t_1": {long, long}, "t_2": {long}}, "0"},
	} {
		targets, threads := oneProcess(3)
		plan, err := Instrument(&mir.InstrRequest{
			Region: &mir.CodeRegion{From: "f.1"}, Metrics: []mir.Metric{{Name: "WC_TIME"}},
			Measuring: &mir.Measuring{Aggregates: []mir.Function{mir.Variance}},
		}, targets)
		if err != nil {
			t.Fatal(err)
		}
		timer := Handles{Timer: "pa_t_1"}
		vs, err := plan.Values(c.measured.reply(plan.Read(timer), threads), timer)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.tuples(vs)[0].Value; got != c.want {
			t.Errorf("%s: the variance is %s, want %s", name, got, c.want)
		}
	}
}

// TestErrorOfLongTimes checks the standard error of a sample of durations that differ by less
// than the rounding of their squares.
func TestErrorOfLongTimes(t *testing.T) {
	targets, threads := oneProcess(1)
	plan, err := Instrument(&mir.InstrRequest{
		Region: &mir.CodeRegion{From: "f.1"}, Metrics: []mir.Metric{{Name: "WC_TIME"}}, OneIn: 2,
		Measuring: &mir.Measuring{Aggregates: []mir.Function{mir.Sum}},
	}, targets)
	if err != nil {
		t.Fatal(err)
	}
	timer := Handles{Timer: "pa_t_1"}
	measured := timings{"t_1": {36e9 - 500, 36e9 + 500}}
	row := omis.List(omis.TokenValue("p_1"), omis.TokenValue("t_1"), omis.Int(4), omis.Int(2), omis.Float(36), omis.Float(144),
		omis.Float(4*36*36), omis.Float(36), omis.Float(36), omis.Int(0), omis.Int(0))
	reply := append(measured.reply(plan.Read(timer), threads), omis.ServiceResult{{Values: []omis.Value{omis.Int(1), row}}})
	vs, err := plan.Values(reply, timer)
	if err != nil {
		t.Fatal(err)
	}
	// Two of four were timed; their variance is 2·500² ns², so the error is 1,414 ns.
	if got := plan.tuples(vs)[0].Sample.Error; got != "0.001414" {
		t.Errorf("the error is %s, want 0.001414", got)
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
	exact, err := Instrument(&mir.InstrRequest{
		Region: &mir.CodeRegion{From: "work"}, Metrics: []mir.Metric{{Name: "WC_TIME"}},
		Measuring: &mir.Measuring{Aggregates: []mir.Function{mir.Variance}},
	}, targets)
	if err != nil {
		t.Fatal(err)
	}
	value := rapid.SampledFrom([]omis.Value{
		omis.List(append([]omis.Value{omis.TokenValue("p_1"), omis.TokenValue("t_1"), omis.Int(-2)}, slices.Repeat([]omis.Value{omis.Uint(math.MaxUint64)}, 8)...)...),
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
		if vs, err := exact.Values(reply, Handles{Timer: "pa_t_1"}); err == nil {
			Document([]Reading{{Plan: exact, Values: vs}})
		}
		NewSnapshot(&mir.SnapshotRequest{Named: true, Stack: 2}, Node{Token: "n_1"}).Read(reply, func(omis.Token, uint64, bool) string { return "" }, nil)
		plan.Bind(reply)
		Defined(reply)
	})
}
