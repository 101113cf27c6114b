package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"mirador/bench/report"
	"mirador/mir"
)

// valueRounds is the number of rounds in which a document is written.
const valueRounds = 11

// measureValues measures how fast a large measurement document is sorted, compressed and
// written, beside encoding/xml, which writes the same values with all their ids, unsorted.
func measureValues(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "values", Title: "Measurement documents of many values"}
	for _, metrics := range []int{1, 4} {
		v := tuples(100_000, metrics)
		what := fmt.Sprintf("100,000 values, %d for each thread", metrics)
		var ours, plain []float64
		var out bytes.Buffer
		for round := range valueRounds {
			o.progress.Say("%s: round %d of %d", what, round+1, valueRounds)
			if ctx.Err() != nil {
				return t, nil
			}
			out.Reset()
			ours = append(ours, timed(func() error { return mir.Encode(&out, &mir.Measured{Probes: []mir.Values{v}}) }))
			plain = append(plain, timed(func() error { return writePlain(io.Discard, v) }))
		}
		reference := report.Summary(plain)
		t.Add(report.Row{What: what, Unit: report.Nanoseconds, Ours: report.Summary(ours), Than: "encoding/xml", Reference: &reference, Goal: report.Within(3)})
		size := float64(out.Len()) / float64(len(v.Tuples))
		t.Add(report.Row{What: "bytes for each value", Ours: report.Stat{Least: size, Median: size}, Goal: report.AtMost(40)})
	}
	size := memoryOf(1_000_000)
	t.Add(report.Row{What: "memory for 1,000,000 values, in MB, with the values", Ours: report.Stat{Least: size, Median: size}, Goal: report.AtMost(200)})
	t.Note("A value of one for each thread takes at least 35 bytes, the names of its element and attributes, and those of its id and its digits.")
	return t, nil
}

func timed(do func() error) float64 {
	runtime.GC()
	began := time.Now()
	_ = do() // writing to memory does not fail
	return float64(time.Since(began))
}

// tuples returns values of threads, in random order. A process has a thousand threads.
func tuples(n, metrics int) mir.Values {
	const threads = 1000
	v := mir.Values{ProbeID: "probe-1", Metrics: metrics, Tuples: make([]mir.Tuple, n)}
	random := rand.New(rand.NewPCG(1, 2))
	var process, thread string
	for i := range v.Tuples {
		if i%(metrics*threads) == 0 {
			process = fmt.Sprintf("p_%d", i/metrics/threads+1)
		}
		if i%metrics == 0 {
			thread = fmt.Sprintf("t_%d", i/metrics+1)
		}
		v.Tuples[i] = mir.Tuple{NodeID: "n_1", ProcessID: process, ThreadID: thread, Metric: i % metrics, Value: fmt.Sprint(random.IntN(1000))}
	}
	random.Shuffle(n, func(i, j int) { v.Tuples[i], v.Tuples[j] = v.Tuples[j], v.Tuples[i] })
	return v
}

// writePlain writes an element for each value.
func writePlain(out io.Writer, v mir.Values) error {
	type measurement struct {
		XMLName xml.Name `xml:"measurement"`
		Probe   string   `xml:"probeId,attr"`
		Node    string   `xml:"nodeId,attr"`
		Process string   `xml:"processId,attr"`
		Thread  string   `xml:"threadId,attr"`
		Value   string   `xml:"value,attr"`
	}
	e := xml.NewEncoder(out)
	for i := range v.Tuples {
		t := &v.Tuples[i]
		if err := e.Encode(measurement{Probe: v.ProbeID, Node: t.NodeID, Process: t.ProcessID, Thread: t.ThreadID, Value: t.Value}); err != nil {
			return err
		}
	}
	return e.Flush()
}

// memoryOf returns the memory in MB of some values and of all that is allocated to write
// their document.
func memoryOf(n int) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := tuples(n, 4)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := after.HeapAlloc - before.HeapAlloc
	written := after.TotalAlloc
	_ = mir.Encode(io.Discard, &mir.Measured{Probes: []mir.Values{v}})
	runtime.ReadMemStats(&after)
	return float64(held+after.TotalAlloc-written) / 1e6
}
