package engine_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// startRivals starts an engine over a node with two placements whose programs cannot stand
// at one address. The cheaper one has no clock of the CPU time.
func startRivals(t *testing.T) (b *bench, near, far *fake.Placer, p *fake.Process) {
	t.Helper()
	n := fake.New("here")
	placing := fake.NewPlacing(n, "near", "far")
	near, far = placing.Places[0], placing.Places[1]
	far.Costly = true
	near.RefuseProgram = func(l program.Placing) error {
		if slices.ContainsFunc(l.Program, func(op program.Op) bool { return op.Clock == program.ClockCPU }) {
			return &program.Refusal{Why: "there is no clock of the CPU time"}
		}
		return changed(far, l)
	}
	far.RefuseProgram = func(l program.Placing) error { return changed(near, l) }
	b = startOver(t, []node.Node{placing}, []*fake.Node{n}, pa.New())
	p = n.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	return b, near, far, p
}

func changed(rival *fake.Placer, l program.Placing) error {
	if rival.StandsAt(l.Watch.Addr) {
		return &program.Refusal{Why: "the code has been changed"}
	}
	return nil
}

// comesTo waits until a request runs in a placement, for a second at most.
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

// A request that another one keeps from its cheapest placement goes to the next one, not
// to the monitor, and comes back when the other ends. Both say so.
func TestPlacementFollowsTheRequests(t *testing.T) {
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
}

// What comes second goes where the first one is, and leaves when that ends.
func TestSecondComesToTheFirst(t *testing.T) {
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
}

// When a breakpoint goes, programs come back to where it stood; as long as another one
// stands there they stay, and name it.
func TestProgramsComeBackAfterABreakpoint(t *testing.T) {
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
}

// Requests that share a timer with one that must run elsewhere come back when that ends.
func TestIntervalsComeBackTogether(t *testing.T) {
	b, near, far, p := startPlacements(t)
	region(b)
	p.Reach(11, 0x10, 100) // ends nowhere
	b.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
	b.ask("thread_reached_addr([],0x230) : pa_timer_stop([pa_t_1])")
	b.ask(": csr_enable([c_3]) csr_enable([c_4])")
	b.runs("c_1", "trap", "c_4, which opens or closes the same intervals")
	p.Reach(11, 0x10, 100) // nor does this one
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
}

// Where what looks out for library calls goes, programs come back.
func TestProgramsComeBackAfterWhatRoams(t *testing.T) {
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
		t.Errorf("%d programs stand", placer.Standing())
	}
}

// csr_disable answers when programs that cost something while they rest are gone, all of
// them at once.
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
		t.Errorf("they were not removed at once: %v", calls)
	}
	b.ask(": csr_enable([c_1,c_2])")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,2]")
}

// What a placement refuses for something that passes is tried again.
func TestTriedAgain(t *testing.T) {
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
}
