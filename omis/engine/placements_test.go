package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// startPlacements starts an engine over a node with two placements, of which the cheaper
// one refuses addresses from 0x100 on, and both those from 0x200 on.
func startPlacements(t *testing.T) (b *bench, near, far *fake.Placer, p *fake.Process) {
	t.Helper()
	n := fake.New("here")
	placing := fake.NewPlacing(n, "near", "far")
	near, far = placing.Places[0], placing.Places[1]
	near.Refuse, far.Refuse = refuseFrom(0x100), refuseFrom(0x200)
	b = startOver(t, []node.Node{placing}, []*fake.Node{n}, pa.New())
	p = n.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	return b, near, far, p
}

func refuseFrom(addr uint64) func(node.Watch) error {
	return func(w node.Watch) error {
		if w.Addr >= addr {
			return &program.Refusal{Why: fmt.Sprintf("%#x is too far", w.Addr)}
		}
		return nil
	}
}

// stands checks how many programs and stores there are in each placement.
func stands(t *testing.T, programs, stores int, places ...*fake.Placer) {
	t.Helper()
	for _, p := range places {
		if p.Standing() != programs || p.Stores() != stores {
			t.Errorf("%s: %d programs, %d stores; want %d, %d", p.Name(), p.Standing(), p.Stores(), programs, stores)
		}
	}
}

// Each request runs where it costs least, and says why nowhere cheaper. What a counter
// counts in several placements adds up by threads.
func TestCheapestPlacement(t *testing.T) {
	b, near, far, p := startPlacements(t)
	b.ask(": pa_counter_create()")
	for _, addr := range []string{"0x10", "0x110", "0x210"} {
		b.ask("thread_reached_addr([]," + addr + ") : pa_counter_add([pa_c_1],1)")
	}
	for range 2 { // explained, and then enabled
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

// Requests that open and close the same intervals move together, as far as the last of
// them must.
func TestIntervalsMoveTogether(t *testing.T) {
	b, near, far, p := startPlacements(t)
	region(b)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	p.Reach(11, 0x10, 100) // ends nowhere
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
	// What comes later goes where the others are, though it could run cheaper.
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

// A program that rests wakes up where the others of its intervals are by then.
func TestProgramsWakeUpTogether(t *testing.T) {
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

// Breakpoints drive programs out of all placements.
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

// Many requests are placed and taken away at once.
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

// What a locked list names is changed by nobody meanwhile: not even by programs, which
// nothing could hold up.
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
	// A conditional one, as soon as it is enabled.
	b.ask("thread_reached_addr([],0x40) : {pa_counter_reset([pa_c_2])}")
	b.runs("c_3", "near", "")
	b.ask(": csr_enable([c_4])")
	b.runs("c_3", "trap", "a locked list names an object that it changes")
	stands(t, 0, 0, near)
	// Another object is another matter.
	b.ask(": csr_delete([c_1,c_2,c_3,c_4]) pa_counter_delete([pa_c_1,pa_c_2]) pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_3],1)")
	b.ask(": csr_enable([])")
	b.runs("c_5", "near", "")
}
