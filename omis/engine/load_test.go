package engine_test

import (
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
)

// amounts is a request that adds an argument of a system call, by a program.
const amounts = `thread_has_started_sys_call([],"write") : pa_counter_add([pa_c_1],$par3)`

func write(p *fake.Process, bytes uint64) {
	p.SysCall(11, "write", omis.Uint(bytes), omis.Int(1), omis.Int(0x1000), omis.Uint(bytes))
}

func (b *bench) askAll(requests ...string) {
	b.Helper()
	for _, r := range requests {
		b.ask(r)
	}
}

// hits checks the known number of hits of requests.
func (b *bench) hits(want uint64, requests ...omis.Token) {
	b.Helper()
	if s := b.spent(requests...); s.Hits != want || s.Uncounted {
		b.Errorf("%v: %+v, want %d hits", requests, s, want)
	}
}

// TestHitsOfLoadedValues checks that the hits of a request are known although its counter adds values from
// events, from which they cannot be calculated.
func TestHitsOfLoadedValues(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.askAll(": pa_counter_create()", amounts, ": csr_enable([c_1])")
	b.runs("c_1", "fake", "it may")
	for _, n := range []uint64{0, 7, 0, 1 << 62, 1 << 63} {
		write(p, n)
	}
	b.counts("1,[p_1,t_1,4611686018427387911]")
	b.hits(5, "c_1")
	if s := b.spent("c_1"); s.Lost != 1 {
		t.Errorf("%d values were too large, want 1", s.Lost)
	}
	b.ask(": pa_counter_reset([pa_c_1])")
	b.hits(5, "c_1")
	write(p, 3)
	b.counts("1,[p_1,t_1,3]")
	b.hits(6, "c_1")

	// A second request shares the counter of hits; a third one has a timer, which counts its hits.
	b.askAll(`thread_has_ended_sys_call([],"write") : pa_counter_add([pa_c_1],$par1)`, ": pa_timer_create()",
		`thread_has_ended_sys_call([],"write") : pa_counter_add([pa_c_1],$par1) pa_timer_start([pa_t_1])`,
		`thread_has_ended_sys_call([],"write") : pa_counter_add([pa_c_1],1)`, ": csr_enable([c_2,c_3,c_4])")
	write(p, 1)
	b.hits(9, "c_1", "c_2", "c_4") // each has the same share of the three new hits
	b.hits(1, "c_3")
	b.counts("1,[p_1,t_1,7]")

	b.ask(": pa_counter_delete([pa_c_1])")
	if n := placer.Stores(); n != 0 {
		t.Errorf("%d stores of a deleted counter are left", n)
	}
}

// TestWhichProgramsCountTheirHits checks that a program has an additional step that counts hits only if the
// hits do not follow from its other steps.
func TestWhichProgramsCountTheirHits(t *testing.T) {
	b, placer, _ := startPlacing(t)
	b.ask(": pa_counter_create() pa_counter_create() pa_trace_create(10)")
	for i, c := range []struct {
		list  string
		steps int
	}{
		{"pa_counter_add([pa_c_1],$par3)", 2},
		{"pa_counter_add([pa_c_1],$par3) pa_counter_add([pa_c_2],1)", 2},
		{"pa_counter_add([pa_c_1],$par3) pa_counter_add([pa_c_1],1)", 3},
		{"pa_trace_add2([pa_b_1],1,$par3)", 1},
		{"pa_counter_add([pa_c_2],3)", 1},
	} {
		b.askAll(`thread_has_started_sys_call([],"write") : `+c.list, ": csr_enable([])")
		if got := placer.Programs()[i]; len(got) != c.steps {
			t.Errorf("%s: %d steps, want %d", c.list, len(got), c.steps)
		}
	}
}

// TestKeptLoadedValues checks that programs that add values from events continue without a monitor, and
// that the next one adopts them with their counter of hits.
func TestKeptLoadedValues(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.ask(": pa_counter_create() pa_timer_create()")
	keepBoth(b)
	b.askAll(amounts, ": csr_enable([c_1])")
	write(p, 10)
	b, placer = successor(t, placer)
	write(p, 20)
	b.counts("1,[p_7,t_10,30]")
	b.askAll(amounts, ": csr_enable([c_1])")
	write(p, 30)
	b.counts("1,[p_7,t_10,60]")
	b.hits(1, "c_1")
	if placer.Placed() != 1 {
		t.Errorf("%d programs were placed, want 1: the kept program was not adopted", placer.Placed())
	}
	if left, err := b.engine.Settle(); err != nil || len(left) != 0 {
		t.Errorf("orphans %v, %v", left, err)
	}
	b.ask(": pa_counter_delete([pa_c_1]) pa_timer_delete([pa_t_1])")
	if n := placer.Stores(); n != 0 {
		t.Errorf("%d stores are left", n)
	}
}

// TestArguments checks that programs and the monitor add the same arguments of functions.
func TestArguments(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		b, placer, p := startPlacing(t)
		where := "fake"
		if refuses {
			placer.Refuse, where = func(node.Watch) error { return &program.Refusal{Why: "no"} }, "trap"
		}
		b.askAll(": pa_counter_create()", "thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],$par2) pa_counter_add([pa_c_1],$int3) pa_counter_add_amount([pa_c_1],$int3)", ": csr_enable([])")
		b.runs("c_1", where, "")
		p.ReachWith(11, 0x10, node.Args{1, 10, 0xffffffff}) // int3 is -1
		p.ReachWith(11, 0x10, node.Args{1, 1<<64 - 100, 0x700000005})
		b.counts("1,[p_1,t_1,-81]")
		b.hits(2, "c_1")
	}
	b, _, _ := startPlacing(t)
	b.ask(": pa_counter_create()")
	b.want("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],$par7)",
		`0 OMIS_UNKNOWN_ECP(22) [] "position 55: thread_reached_addr has no event context parameter $par7"`+"\n")
}
