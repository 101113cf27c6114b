package mir

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDecompressWithoutEntities checks requests that name no entities, whose documents have
// the ids of all entities that are not null.
func TestDecompressWithoutEntities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Values{ProbeID: "probe-1", Metrics: rapid.IntRange(1, 3).Draw(t, "metrics")}
		some := func(kind string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", kind + "_1", kind + "_2", kind + "_10"}), 1, 3, rapid.ID).Draw(t, kind)
		}
		want := map[string]string{}
		for _, node := range some("n") {
			for _, process := range some("p") {
				for _, thread := range some("t") {
					for metric := range v.Metrics {
						tuple := Tuple{NodeID: node, ProcessID: process, ThreadID: thread, Metric: metric, Value: fmt.Sprint(len(want))}
						v.Tuples = append(v.Tuples, tuple)
						want[tuple.name()] = tuple.Value
					}
				}
			}
		}
		checkReversible(t, func(*Values) map[string]string { return want }, v)
	})
}

// TestDecompressSymbols checks requests with several symbols, whose kinds differ, beside named entities.
func TestDecompressSymbols(t *testing.T) {
	entities := []Entity{named(Process, "?"), named(Thread, "t_1"), named(Thread, "?"), named(Node, "*")}
	some := []Tuple{{ProcessID: "p_1"}, {ThreadID: "t_1"}, {ThreadID: "t_2"}, {NodeID: "n_1"}, {NodeID: "n_2"}}
	for chosen := range 1 << len(some) {
		for metrics := range 2 {
			v := Values{Metrics: metrics + 1, Entities: entities}
			want := map[string]string{}
			for i, tuple := range some {
				for tuple.Metric = 0; tuple.Metric <= metrics; tuple.Metric++ {
					tuple.Value = ""
					if chosen&(1<<i) != 0 {
						tuple.Value = fmt.Sprint(len(want))
						v.Tuples = append(v.Tuples, tuple)
					}
					if tuple.Value != "" || tuple.ThreadID == "t_1" {
						want[tuple.name()] = tuple.Value
					}
				}
			}
			checkReversible(t, func(*Values) map[string]string { return want }, v)
		}
	}
}

// TestDecompressStatistics checks that statistics keep the ids around them.
func TestDecompressStatistics(t *testing.T) {
	v := Values{Metrics: 1, Functions: 3, Tuples: []Tuple{
		{Function: 0, Value: "1", ProcessID: "p_1", ThreadID: "t_1"},
		{Function: 1, Value: "9", ProcessID: "p_1", ThreadID: "t_2"},
		{Function: 2, Value: "5"},
	}}
	document, _ := compressed(t, v)
	read, err := Decompress([]Values{v}, document)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(read[0].Tuples), fmt.Sprint(v.Tuples); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDecompressRefuses checks documents that do not fit the requests.
func TestDecompressRefuses(t *testing.T) {
	named := []Entity{{Kind: Process, ID: "p_1"}, {Kind: Process, ID: "p_2"}}
	for _, c := range []struct {
		requests []Values
		document Measurement
		why      string
	}{
		{[]Values{{ProbeID: "probe-1"}, {ProbeID: "probe-2"}}, Measurement{Children: []Measurement{{ProbeID: "probe-3", Value: "1"}}}, `probe "probe-3"`},
		{[]Values{{Metrics: 1, Entities: named}}, Measurement{Children: []Measurement{{Value: "1"}}}, "no element for process p_2"},
		{[]Values{{Metrics: 1, Entities: named}}, Measurement{Children: make([]Measurement, 3)}, "1 elements more"},
		{[]Values{{Metrics: 2}}, Measurement{ProcessID: "p_1", Children: make([]Measurement, 3)}, "3 values of one entity"},
		{[]Values{{Metrics: 1, Functions: 2}}, Measurement{Value: "1"}, "1 statistics, the request asks for 2"},
	} {
		if _, err := Decompress(c.requests, &c.document); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("the error is %v, want %q", err, c.why)
		}
	}
}

// FuzzDecompress checks that no document makes Decompress fail other than by an error.
func FuzzDecompress(f *testing.F) {
	f.Add(`<measurement><measurement processId="p_1" value="1"/><measurement processId="p_2"/></measurement>`, 1, 0)
	f.Add(`<measurement probeId="probe-1" nodeId="n_1"><measurement value="1"/><measurement value="2"/></measurement>`, 2, 0)
	f.Add(`<measurement><measurement value="1"/><measurement threadId="t_1" value="2"/></measurement>`, 1, 2)
	f.Fuzz(func(t *testing.T, text string, metrics, functions int) {
		document, err := Decode([]byte(text), ReplyLimits())
		if err != nil {
			return
		}
		m, ok := document.(*Measurement)
		if !ok {
			return
		}
		some := []Entity{{Kind: Process, ID: "*", Children: []Entity{{Kind: Thread, ID: "t_1"}, {Kind: Thread, ID: "?"}}}, {Kind: Process, ID: "p_1"}}
		for _, entities := range [][]Entity{nil, some, some[:1], some[1:]} {
			v := Values{ProbeID: "probe-1", Metrics: metrics, Functions: functions, Entities: entities}
			_, _ = Decompress([]Values{v}, m)
			_, _ = Decompress([]Values{v, {ProbeID: "probe-2"}}, m)
		}
	})
}
