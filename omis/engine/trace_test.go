package engine_test

import (
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// traced are the records that are read of a trace, as thread:mark:value.
func (b *bench) traced(most int) (lost uint64, records []string) {
	b.Helper()
	values := b.reply(fmt.Sprintf(": pa_trace_read([pa_b_1],%d)", most))[1][0].Values
	if len(values) != 3 || uint64(len(values[2].List)) != 5*values[1].N {
		b.Fatalf("the trace has %v", values)
	}
	last := 0.0
	for r := values[2].List; len(r) > 0; r = r[5:] {
		if r[2].Float < last {
			b.Errorf("a record of %g comes after one of %g", r[2].Float, last)
		}
		last = r[2].Float
		mark, _ := r[3].Int64()
		value, _ := r[4].Int64()
		records = append(records, fmt.Sprintf("%s:%d:%d", r[1].Str, mark, value))
	}
	return values[0].N, records
}

// wantTraced reads a trace and checks what it has.
func (b *bench) wantTraced(most int, lost uint64, records ...string) {
	b.Helper()
	gone, got := b.traced(most)
	if gone != lost || fmt.Sprint(got) != fmt.Sprint(records) {
		b.Errorf("%d lost, %v, want %d, %v", gone, got, lost, records)
	}
}

// inBothPlaces runs a test where programs append records, and where the monitor does.
func inBothPlaces(t *testing.T, test func(*testing.T, *bench, interface{ Reach(int, uint64, uint64) })) {
	for name, refuse := range map[string]bool{"by programs": false, "by the monitor": true} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			if refuse {
				placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "it is to"} }
			}
			for _, request := range []string{
				": pa_trace_create(3)",
				"thread_reached_addr([],0x10) : pa_trace_add([pa_b_1],1)",
				"thread_reached_addr([],0x20) : pa_trace_add2([pa_b_1],-2,-30000000000)",
				": csr_enable([c_1,c_2])",
			} {
				if err := b.reply(request).Err(); err != nil {
					t.Fatalf("%s: %v", request, err)
				}
			}
			test(t, b, p)
		})
	}
}

// Each record is read once, in the order of time, or told to be lost.
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
			t.Error("a trace can be read that was deleted")
		}
	})
}

// Who reads a few at a time gets all of them all the same.
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

// What a request without an event appends is of nobody, and has the time of then.
func TestTraceOutsideOfEvents(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		p.Reach(11, 0x10, 0)
		b.ask(": pa_trace_add([pa_b_1],7)")
		p.Reach(11, 0x10, 0)
		b.wantTraced(0, 0, "t_1:1:0", string(omis.Undefined)+":7:0", "t_1:1:0")
	})
}

// What was appended outlasts the programs that did.
func TestTraceOutlastsPrograms(t *testing.T) {
	inBothPlaces(t, func(t *testing.T, b *bench, p interface{ Reach(int, uint64, uint64) }) {
		p.Reach(11, 0x10, 0)
		b.ask(": csr_delete([c_1,c_2])")
		p.Reach(11, 0x10, 0)
		b.wantTraced(0, 0, "t_1:1:0")
	})
}

// Requests that trace say how often they were executed, as those that count do.
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
		t.Errorf("it says %+v (%v), want 7 hits", spent, err)
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
