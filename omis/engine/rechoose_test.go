package engine_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/program"
)

// startRivals starts an engine with two placements whose programs cannot be at the same address. The
// cheaper one cannot read the CPU time.
func startRivals(t *testing.T) (b *bench, near, far *fake.Placer, p *fake.Process) {
	t.Helper()
	b, places, p := startPlacers(t, "near", "far")
	near, far = places[0], places[1]
	far.Costly = true
	near.RefuseProgram = func(l program.Placing) error {
		if slices.ContainsFunc(l.Program, func(op program.Op) bool { return op.Clock == program.ClockCPU }) {
			return &program.Refusal{Why: "there is no clock of the CPU time"}
		}
		return changed(far, l)
	}
	far.RefuseProgram = func(l program.Placing) error { return changed(near, l) }
	return b, near, far, p
}

func changed(rival *fake.Placer, l program.Placing) error {
	if rival.StandsAt(l.Watch.Addr) {
		return &program.Refusal{Why: "the code has been changed"}
	}
	return nil
}

// comesTo waits for at most a second until a request has a placement.
func (b *bench) comesTo(request omis.Token, where string) {
	b.Helper()
	var name string
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		x, err := b.tool.State(request)
		if err != nil {
			b.Fatal(err)
		}
		if name = x.Placement.Name; name == where {
			return
		}
	}
	b.Errorf("after a second %s runs in %s, want %s", request, name, where)
}

// TestPlacementFollowsTheRequests checks that a request that cannot have its cheapest placement because
// of another request moves to the next cheapest one, and moves back when the other request ends. Both
// requests report the reason.
func TestPlacementFollowsTheRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, near, far, p := startRivals(t)
		b.ask(`: pa_counter_create() pa_timer_create2("cpu")`)
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])")
		b.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])")
		b.ask(": csr_enable([c_1])")
		b.runs("c_1", "near", "it may")
		p.Reach(11, 0x10, 100)
		for i, end := range []string{": csr_disable([c_2,c_3])", ": csr_delete([c_2,c_3])"} {
			b.ask(": csr_enable([c_2,c_3])")
			b.runs("c_1", "far", "near: c_2, which runs in the placement far, has a probe there")
			b.runs("c_2", "far", "it keeps c_1 from running where it is cheaper")
			stands(t, 0, 0, near)
			p.Reach(11, 0x10, 100)
			p.Reach(11, 0x20, 100)
			b.intervals(int64(i) + 1)
			b.ask(end)
			b.comesTo("c_1", "near")
			b.runs("c_1", "near", "it may")
			stands(t, 0, 0, far)
			p.Reach(11, 0x10, 100)
			b.counts(fmt.Sprintf("1,[p_1,t_1,%d]", 2*i+3))
		}
		if p.Threads[0].Suspended > 0 {
			t.Error("the process is suspended")
		}
	})
}

// TestSecondComesToTheFirst checks that a request gets the placement of an earlier request at the same
// address, and moves to its cheapest placement when the earlier request ends.
func TestSecondComesToTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, near, far, p := startRivals(t)
		b.ask(`: pa_counter_create() pa_timer_create2("cpu")`)
		b.ask("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])")
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask(": csr_enable([c_1]) csr_enable([c_2])")
		b.runs("c_2", "far", "near: the code has been changed; c_1, which runs in the placement far, has a probe there")
		b.runs("c_1", "far", "it keeps c_2 from running where it is cheaper")
		p.Reach(11, 0x10, 100)
		b.ask(": csr_disable([c_1])")
		b.comesTo("c_2", "near")
		p.Reach(11, 0x10, 100)
		b.counts("1,[p_1,t_1,2]")
		stands(t, 1, 1, near)
		stands(t, 0, 0, far)
	})
}

// TestProgramsComeBackAfterABreakpoint checks that programs are placed again at the address of a
// breakpoint when the last breakpoint there is removed, and that the requests name the breakpoint
// until then.
func TestProgramsComeBackAfterABreakpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, far, p := startRivals(t)
		b.ask(`: pa_counter_create() pa_timer_create2("cpu")`)
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])")
		b.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])")
		b.ask("thread_reached_addr([],0x10) : print([])")
		b.ask("thread_reached_addr([],0x10) : print([])")
		b.ask(": csr_enable([c_1,c_4]) csr_enable([c_2,c_3,c_5])")
		for _, c := range []omis.Token{"c_1", "c_2", "c_3"} {
			b.runs(c, "trap", "")
		}
		b.runs("c_4", "trap", "it keeps c_1, c_2 from running where it is cheaper")
		p.Reach(11, 0x10, 100)
		b.ask(": csr_delete([c_4])")
		time.Sleep(300 * time.Millisecond)
		b.runs("c_1", "trap", "a breakpoint of another request stands at 0x10")
		b.runs("c_5", "trap", "it keeps c_1, c_2 from running where it is cheaper")
		suspensions := p.Threads[0].Suspended
		b.ask(": csr_disable([c_5])")
		b.comesTo("c_2", "far")
		b.runs("c_1", "far", "c_2, which runs in the placement far, has a probe there")
		b.runs("c_3", "far", "")
		p.Reach(11, 0x10, 100)
		b.counts("1,[p_1,t_1,2]")
		b.ask(": csr_disable([c_2,c_3])")
		b.comesTo("c_1", "near")
		stands(t, 0, 0, far)
		if p.Threads[0].Suspended != suspensions {
			t.Error("the process is suspended")
		}
	})
}

// TestIntervalsComeBackTogether checks that the requests of a timer return to a cheaper placement when
// the request of the timer that needed a more expensive one ends.
func TestIntervalsComeBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, near, far, p := startPlacements(t)
		region(b)
		p.Reach(11, 0x10, 100) // this interval is never closed
		b.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
		b.ask("thread_reached_addr([],0x230) : pa_timer_stop([pa_t_1])")
		b.ask(": csr_enable([c_3]) csr_enable([c_4])")
		b.runs("c_1", "trap", "c_4, which opens or closes the same intervals")
		p.Reach(11, 0x10, 100) // neither is this one
		b.ask(": csr_delete([c_4])")
		b.comesTo("c_1", "far")
		b.runs("c_2", "far", "c_3, which opens or closes the same intervals")
		b.ask(": csr_delete([c_3])")
		b.comesTo("c_1", "near")
		b.runs("c_2", "near", "it may")
		p.Reach(11, 0x20, 100)
		p.Reach(11, 0x10, 100)
		p.Reach(11, 0x20, 100)
		b.intervals(1)
		b.unfinished(2)
		b.counts("1,[p_1,t_1,3]")
		stands(t, 2, 2, near)
		stands(t, 0, 0, far)
	})
}

// TestProgramsComeBackAfterLibraryCalls checks that programs are placed again when the request that
// watches library calls is disabled.
func TestProgramsComeBackAfterLibraryCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, placer, p := startPlacing(t)
		b.ask(": pa_counter_create()")
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask(`thread_has_started_lib_call([],"malloc") : print([])`)
		b.ask(": csr_enable([c_1]) csr_enable([c_2])")
		b.runs("c_1", "trap", "c_2 looks out for library calls")
		p.Reach(11, 0x10, 0)
		b.ask(": csr_disable([c_2])")
		b.comesTo("c_1", "fake")
		p.Reach(11, 0x10, 0)
		b.counts("1,[p_1,t_1,2]")
		if placer.Standing() != 1 {
			t.Errorf("%d programs are placed", placer.Standing())
		}
	})
}

// TestDisabledCostsNothing checks that csr_disable removes programs of a placement whose inactive
// programs cost time, all together, before it returns.
func TestDisabledCostsNothing(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Costly = true
	region(b)
	p.Reach(11, 0x10, 0)
	b.ask(": csr_disable([c_1,c_2])")
	if placer.Standing() != 0 || placer.Stores() != 0 {
		t.Errorf("%d programs and %d stores are left", placer.Standing(), placer.Stores())
	}
	if calls := placer.Calls(); !slices.Contains(calls, "remove 2") {
		t.Errorf("the programs were not removed together: %v", calls)
	}
	b.ask(": csr_enable([c_1,c_2])")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,2]")
}

// TestTriedAgain checks that the engine tries a placement again if the reason for its refusal may
// disappear.
func TestTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, near, _, p := startPlacements(t)
		var refused atomic.Int32
		near.RefuseProgram = func(program.Placing) error {
			if refused.Add(1) <= 2 {
				return &program.Refusal{Why: "a thread is in its middle", Passing: true}
			}
			return nil
		}
		b.ask(": pa_counter_create()")
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask(": csr_enable([c_1])")
		b.runs("c_1", "far", "a thread is in its middle")
		p.Reach(11, 0x10, 100)
		eventually(t, func() bool { x, err := b.tool.State("c_1"); return err == nil && x.Placement.Name == "near" })
		p.Reach(11, 0x10, 100)
		b.counts("1,[p_1,t_1,2]")
	})
}
