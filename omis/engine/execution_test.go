package engine_test

import (
	"slices"
	"testing"

	"mirador/omis/node"
	"mirador/omis/program"
)

// TestRecordsOfExecutions checks that pa_trace_last appends what the action before it has
// measured, and nothing if that is nothing, and pa_trace_stack the stack pointer.
func TestRecordsOfExecutions(t *testing.T) {
	for name, refuse := range map[string]bool{"by programs": false, "by the monitor": true} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			if refuse {
				placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "it is to"} }
			}
			b.must(": pa_trace_create(100) pa_counter_create() pa_timer_create()",
				"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],2) pa_trace_last([pa_b_1],1) pa_trace_stack([pa_b_1],2) pa_timer_start([pa_t_1])",
				"thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1]) pa_trace_last([pa_b_1],3) pa_trace_stack([pa_b_1],4)",
				": csr_enable([c_1,c_2])")
			p.Reach(11, 0x20, 0x7000) // it began before
			p.Reach(11, 0x10, 0x7000)
			p.Reach(11, 0x10, 0x6000)
			<-p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x20, SP: 0x6000, Time: 1 << 62})
			lost, records := b.traced(0)
			if want := []string{"t_1:4:28672", "t_1:1:2", "t_1:2:28672", "t_1:1:4", "t_1:2:24576"}; lost != 0 || len(records) != 7 || !slices.Equal(records[:5], want) {
				t.Errorf("%d lost, %v", lost, records)
			}
		})
	}
}
