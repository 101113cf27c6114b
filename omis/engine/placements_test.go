package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
)

// startPlacements starts an engine with two placements. The cheaper one, near, refuses addresses from
// 0x100, and far refuses addresses from 0x200.
func startPlacements(t *testing.T) (b *bench, near, far *fake.Placer, p *fake.Process) {
	t.Helper()
	b, places, p := startPlacers(t, "near", "far")
	places[0].Refuse, places[1].Refuse = refuseFrom(0x100), refuseFrom(0x200)
	return b, places[0], places[1], p
}

func refuseFrom(addr uint64) func(node.Watch) error {
	return func(w node.Watch) error {
		if w.Addr >= addr {
			return &program.Refusal{Why: fmt.Sprintf("%#x is too far", w.Addr)}
		}
		return nil
	}
}

// stands checks the numbers of programs and stores in each placement.
func stands(t *testing.T, programs, stores int, places ...*fake.Placer) {
	t.Helper()
	for _, p := range places {
		if p.Standing() != programs || p.Stores() != stores {
			t.Errorf("%s: %d programs, %d stores; want %d, %d", p.Name(), p.Standing(), p.Stores(), programs, stores)
		}
	}
}

// TestCheapestPlacement checks that each request has the cheapest possible placement, with the reason
// why it is not a cheaper one, and that a counter adds up the rows of several placements by threads.
func TestCheapestPlacement(t *testing.T) {
	b, near, far, p := startPlacements(t)
	b.ask(": pa_counter_create()")
	for _, addr := range []string{"0x10", "0x110", "0x210"} {
		b.ask("thread_reached_addr([]," + addr + ") : pa_counter_add([pa_c_1],1)")
	}
	for range 2 { // before and after csr_enable
		b.runs("c_1", "near", "it may")
		b.runs("c_2", "far", "nothing is cheaper: near: 0x110 is too far")
		b.runs("c_3", "trap", "nothing is cheaper: near: 0x210 is too far; far: 0x210 is too far")
		b.ask(": csr_enable([])")
	}
	stands(t, 1, 1, near, far)
	for _, addr := range []uint64{0x10, 0x110, 0x210} {
		p.Reach(11, addr, 100)
		p.Reach(12, addr, 100)
		p.Reach(12, addr, 100)
	}
	b.counts("2,[p_1,t_1,3,p_1,t_2,6]")
	b.ask(": pa_counter_reset([pa_c_1])")
	p.Reach(12, 0x110, 100)
	b.counts("1,[p_1,t_2,1]")
	b.ask(": csr_delete([])")
	stands(t, 0, 0, near, far)
	b.counts("1,[p_1,t_2,1]")
}

// TestIntervalsMoveTogether checks that requests that open and close the same intervals move to the
// cheapest placement that can run all of them.
func TestIntervalsMoveTogether(t *testing.T) {
	b, near, far, p := startPlacements(t)
	region(b)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	p.Reach(11, 0x10, 100) // this interval is never closed
	stands(t, 2, 2, near)
	b.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
	b.runs("c_3", "far", "near: 0x130 is too far")
	b.runs("c_1", "near", "")
	b.ask(": csr_enable([c_3])")
	for _, c := range []omis.Token{"c_1", "c_2"} {
		b.runs(c, "far", "near: c_3, which opens or closes the same intervals, cannot run there")
	}
	stands(t, 0, 0, near)
	stands(t, 3, 2, far)
	p.Reach(11, 0x130, 100)
	p.Reach(12, 0x10, 100)
	p.Reach(12, 0x130, 100)
	b.counts("2,[p_1,t_1,2,p_1,t_2,1]")
	b.intervals(1, 1)
	b.unfinished(1)
	// A later request has the placement of the others, although a cheaper one could run it.
	b.ask("thread_reached_addr([],0x40) : pa_timer_start([pa_t_1])")
	b.runs("c_4", "far", "which opens or closes the same intervals, runs in the placement far")
	b.ask(": csr_enable([c_4])")
	b.runs("c_4", "far", "which opens or closes the same intervals, runs in the placement far")
	b.ask("thread_reached_addr([],0x240) : pa_timer_stop([pa_t_1])")
	b.ask(": csr_enable([c_5])")
	b.runs("c_5", "trap", "runs in the placement far; far: 0x240 is too far")
	for _, c := range []omis.Token{"c_1", "c_2", "c_3", "c_4"} {
		b.runs(c, "trap", "far: c_5, which opens or closes the same intervals, cannot run there")
	}
	stands(t, 0, 0, near, far)
	p.Reach(12, 0x40, 100)
	p.Reach(12, 0x240, 100)
	b.intervals(1, 2)
	b.ask(": csr_disable([]) csr_enable([c_1,c_2])")
	stands(t, 2, 2, near)
}

// TestRecordsOfEndsMoveTogether checks that requests that record the beginnings and the ends of executions run in one
// placement: two placements may give a thread that has ended before it was examined different tokens.
func TestRecordsOfEndsMoveTogether(t *testing.T) {
	b, near, far, p := startPlacements(t)
	life := map[*fake.Placer]uint64{near: 2, far: 1} // the time when it was first seen, and when it began
	for placer, started := range life {
		placer.Started = func(int) uint64 { return started }
	}
	b.must(": pa_trace_create(100) pa_counter_create()",
		"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) pa_trace_stack([pa_b_1],1)",
		"thread_reached_addr([],0x130) : pa_trace_stack([pa_b_1],2)",
		"thread_reached_addr([],0x20) : pa_trace_add([pa_b_1],3)",
		": csr_enable([])")
	b.runs("c_1", "far", "near: c_2, which opens or closes the same intervals, cannot run there")
	b.runs("c_2", "far", "")
	b.runs("c_3", "near", "")
	p.Reach(11, 0x10, 0x7000)
	p.Reach(11, 0x130, 0x7000)
	if lost, records := b.traced(0); lost != 0 || !slices.Equal(records, []string{"t_1:1:28672", "t_1:2:28672"}) {
		t.Errorf("%d lost, %v", lost, records)
	}
}

// TestReenabledProgramJoinsTheOthers checks that a request that is enabled again has the placement
// that the other requests of its intervals have now.
func TestReenabledProgramJoinsTheOthers(t *testing.T) {
	b, near, far, p := startPlacements(t)
	region(b)
	b.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
	b.ask(": csr_disable([c_1]) csr_enable([c_3])")
	b.runs("c_2", "far", "")
	stands(t, 1, 2, near)
	b.ask(": csr_enable([c_1])")
	b.runs("c_1", "far", "which opens or closes the same intervals, runs in the placement far")
	stands(t, 0, 0, near)
	stands(t, 3, 2, far)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x130, 100)
	b.intervals(1)
}

// TestBreakpointsAndPlacements checks that breakpoints remove programs from all placements.
func TestBreakpointsAndPlacements(t *testing.T) {
	b, near, far, p := startPlacements(t)
	b.ask(": pa_counter_create()")
	for _, addr := range []string{"0x10", "0x110"} {
		b.ask("thread_reached_addr([]," + addr + ") : pa_counter_add([pa_c_1],1)")
		b.ask("thread_reached_addr([]," + addr + ") : print([])")
	}
	b.ask(": csr_enable([c_1,c_3])")
	stands(t, 1, 1, near, far)
	b.ask(": csr_enable([c_2,c_4])")
	b.runs("c_1", "trap", "a breakpoint of c_2 stands at the same address")
	b.runs("c_3", "trap", "a breakpoint of c_4 stands at the same address")
	stands(t, 0, 0, near, far)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x110, 100)
	b.counts("1,[p_1,t_1,2]")
	b.ask(": csr_delete([c_2,c_4]) csr_disable([]) csr_enable([])")
	stands(t, 1, 1, near, far)
	b.ask(`thread_has_started_lib_call([],"malloc") : print([])`)
	b.ask(": csr_enable([c_5])")
	stands(t, 0, 0, near, far)
}

// TestManyRequestsAtOnce checks that the programs of many requests are placed and removed together.
func TestManyRequestsAtOnce(t *testing.T) {
	b, near, far, p := startPlacements(t)
	const regions = 40
	for i := range regions {
		b.ask(": pa_counter_create() pa_timer_create()")
		b.ask(fmt.Sprintf("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%[2]d])", 0x10+i, i+1))
		exit := 0x50 + i
		if i%4 == 0 {
			exit += 0x100
		}
		b.ask(fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_%d])", exit, i+1))
	}
	b.ask(": csr_enable([])")
	stands(t, regions*2*3/4, regions*2*3/4, near)
	stands(t, regions*2/4, regions*2/4, far)
	for i := range uint64(regions) {
		p.Reach(11, 0x10+i, 100)
	}
	b.counts("1,[p_1,t_1,1]")
	b.ask(": csr_disable([])")
	b.ask(": csr_enable([])")
	b.ask(": csr_delete([])")
	stands(t, 0, 0, near, far)
	if want := []string{"judge 80", "place 60", "remove 60"}; !slices.Equal(near.Calls(), want) {
		t.Errorf("%s, want %s", strings.Join(near.Calls(), ", "), want)
	}
	if want := []string{"judge 20", "place 20", "remove 20"}; !slices.Equal(far.Calls(), want) {
		t.Errorf("%s, want %s", strings.Join(far.Calls(), ", "), want)
	}
}

// TestProgramsGiveWayToLockedLists checks that requests that change an object of a locked list run by
// trap. A program would change the object during the list, because it cannot be delayed.
func TestProgramsGiveWayToLockedLists(t *testing.T) {
	b, near, _, p := startPlacements(t)
	b.ask(": pa_counter_create() pa_counter_create() pa_timer_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])")
	b.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])")
	b.ask("thread_reached_addr([],0x30) : pa_counter_add([pa_c_2],1)")
	b.ask(": csr_enable([])")
	p.Reach(11, 0x10, 100)
	b.ask(": {thread_get_info([],1)}")
	stands(t, 3, 3, near)
	b.want(": {pa_counter_read([pa_c_1]) pa_counter_reset([pa_c_1])}", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 1,[p_1,t_1,1]\n2 OMIS_OK []\n")
	b.runs("c_1", "trap", "a locked list names an object that it changes")
	b.runs("c_2", "trap", "c_1, which opens or closes the same intervals, is executed by the monitor")
	b.runs("c_3", "near", "")
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,1]")
	b.ask(": csr_disable([c_1]) csr_enable([c_1])")
	b.runs("c_1", "trap", "a locked list names an object that it changes")
	// A conditional request with a locked list has this effect when it is enabled.
	b.ask("thread_reached_addr([],0x40) : {pa_counter_reset([pa_c_2])}")
	b.runs("c_3", "near", "")
	b.ask(": csr_enable([c_4])")
	b.runs("c_3", "trap", "a locked list names an object that it changes")
	stands(t, 0, 0, near)
	// A request on another object is placed.
	b.ask(": csr_delete([c_1,c_2,c_3,c_4]) pa_counter_delete([pa_c_1,pa_c_2]) pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_3],1)")
	b.ask(": csr_enable([])")
	b.runs("c_5", "near", "")
}
