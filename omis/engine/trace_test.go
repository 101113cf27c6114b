package engine_test

import (
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// traced reads a trace and returns its records as thread:mark:value.
func (b *bench) traced(most int) (lost uint64, records []string) {
	b.Helper()
	values := b.reply(fmt.Sprintf(": pa_trace_read([pa_b_1],%d)", most))[1][0].Values
	if len(values) != 3 || uint64(len(values[2].List)) != 5*values[1].N {
		b.Fatalf("the trace has %v", values)
	}
	last := 0.0
	for r := values[2].List; len(r) > 0; r = r[5:] {
		if r[2].Float < last {
			b.Errorf("a record with the time %g follows one with %g", r[2].Float, last)
		}
		last = r[2].Float
		mark, _ := r[3].Int64()
		value, _ := r[4].Int64()
		records = append(records, fmt.Sprintf("%s:%d:%d", r[1].Str, mark, value))
	}
	return values[0].N, records
}

// wantTraced reads a trace and compares the result.
func (b *bench) wantTraced(most int, lost uint64, records ...string) {
	b.Helper()
	missing, got := b.traced(most)
	if missing != lost || fmt.Sprint(got) != fmt.Sprint(records) {
		b.Errorf("%d lost, %v, want %d, %v", missing, got, lost, records)
	}
}

// inBothPlaces runs a test with programs that append records, and with the monitor.
func inBothPlaces(t *testing.T, test func(*testing.T, *bench, interface{ Reach(int, uint64, uint64) })) {
	for name, refuse := range map[string]bool{"by programs": false, "by the monitor": true} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			if refuse {
				placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "it is to"} }
			}
			b.must(": pa_trace_create(3)", "thread_reached_addr([],0x10) : pa_trace_add([pa_b_1],1)",
				"thread_reached_addr([],0x20) : pa_trace_add2([pa_b_1],-2,-30000000000)", ": csr_enable([c_1,c_2])")
			test(t, b, p)
		})
	}
}

// TestTrace checks that each record is read once, in the order of time, or reported as lost.
func TestTrace(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		b.wantTraced(0, 0)
		p.Reach(11, 0x10, 0)
		p.Reach(12, 0x20, 0)
		p.Reach(11, 0x20, 0)
		b.wantTraced(0, 0, "t_1:1:0", "t_2:-2:-30000000000", "t_1:-2:-30000000000")
		b.wantTraced(0, 0)
		for range 5 {
			p.Reach(11, 0x10, 0)
		}
		p.Reach(12, 0x10, 0)
		b.wantTraced(0, 2, "t_1:1:0", "t_1:1:0", "t_1:1:0", "t_2:1:0")
		p.Reach(11, 0x10, 0)
		b.ask(": pa_trace_reset([pa_b_1])")
		b.wantTraced(0, 0)
		b.ask(": pa_trace_delete([pa_b_1])")
		if reply := b.reply(": pa_trace_read([pa_b_1],0)"); reply.Err() == nil {
			t.Error("a deleted trace can be read")
		}
	})
}

// TestTraceByBatches checks that reading a few records at a time returns all of them.
func TestTraceByBatches(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		for range 5 {
			p.Reach(11, 0x10, 0)
		}
		b.wantTraced(2, 2, "t_1:1:0", "t_1:1:0")
		p.Reach(12, 0x20, 0)
		b.wantTraced(2, 0, "t_1:1:0", "t_2:-2:-30000000000")
		b.wantTraced(2, 0)
	})
}

// TestTraceOutsideOfEvents checks that a record of an unconditional request has no thread and the
// time of its execution.
func TestTraceOutsideOfEvents(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		p.Reach(11, 0x10, 0)
		b.ask(": pa_trace_add([pa_b_1],7)")
		p.Reach(11, 0x10, 0)
		b.wantTraced(0, 0, "t_1:1:0", string(omis.Undefined)+":7:0", "t_1:1:0")
	})
}

// TestTraceOutlastsPrograms checks that records remain after their programs were removed.
func TestTraceOutlastsPrograms(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		p.Reach(11, 0x10, 0)
		b.ask(": csr_delete([c_1,c_2])")
		p.Reach(11, 0x10, 0)
		b.wantTraced(0, 0, "t_1:1:0")
	})
}

// TestSpentOnTraces checks that the hits of requests that append records are known.
func TestSpentOnTraces(t *testing.T) {
	b, _, p := startPlacing(t)
	b.ask(": pa_trace_create(3)")
	b.ask("thread_reached_addr([],0x10) : pa_trace_add([pa_b_1],1) pa_trace_add([pa_b_1],2)")
	b.ask(": csr_enable([c_1])")
	for range 7 {
		p.Reach(11, 0x10, 0)
	}
	b.traced(0)
	if spent, err := b.tool.Spent([]omis.Token{"c_1"}); err != nil || spent.Hits != 7 || spent.Uncounted {
		t.Errorf("got %+v (%v), want 7 hits", spent, err)
	}
}

func TestRefusedTraces(t *testing.T) {
	b := start(t, pa.New())
	for request, want := range map[string]string{
		": pa_trace_create(0)":                            "a trace keeps 1 to 65536 records of each thread",
		": pa_trace_create(65537)":                        "a trace keeps 1 to 65536 records of each thread",
		": pa_trace_read([pa_b_1],-1)":                    "the number of records to read must be 0 (all) or greater",
		": pa_trace_add([pa_b_1],2147483648)":             "the mark does not fit into a signed 32-bit integer",
		": pa_trace_add2([pa_b_1],1,9223372036854775808)": "the value does not fit into a signed 64-bit integer",
	} {
		b.ask(": pa_trace_create(1)")
		if err := b.reply(request).Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", request, err, want)
		}
	}
}
