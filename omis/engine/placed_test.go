package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/syntax"
)

// startPlacers starts an engine with a node with the named placements, and attaches a tool to a
// process.
func startPlacers(t *testing.T, names ...string) (*bench, []*fake.Placer, *fake.Process) {
	t.Helper()
	n := fake.New("here")
	placing := fake.NewPlacing(n, names...)
	b := startOver(t, []program.Machine{placing}, []*fake.Node{n}, pa.New())
	p := n.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	return b, placing.Places, p
}

// startPlacing starts an engine with the placement "fake".
func startPlacing(t *testing.T) (*bench, *fake.Placer, *fake.Process) {
	t.Helper()
	b, places, p := startPlacers(t, "fake")
	return b, places[0], p
}

// explain explains one request.
func (b *bench) explain(request string) (omis.Explanation, error) {
	b.Helper()
	list, err := b.tool.Explain(nil, request)
	if err != nil {
		return omis.Explanation{}, err
	}
	return list[0], nil
}

// runs checks the placement of a request, and that the reason contains why.
func (b *bench) runs(request omis.Token, where, why string) {
	b.Helper()
	x, err := b.tool.State(request)
	if err != nil {
		b.Fatal(err)
	}
	if x.Placement.Name != where || !strings.Contains(x.Placement.Why, why) {
		b.Errorf("%s runs in %s, want %s because %q", request, x.Placement, where, why)
	}
}

// counts checks the rows of pa_c_1.
func (b *bench) counts(counter string) {
	b.Helper()
	b.want(": pa_counter_read([pa_c_1])", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] "+counter+"\n")
}

// intervals checks the number of intervals in each row of pa_t_1.
func (b *bench) intervals(want ...int64) {
	b.Helper()
	rows := b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	if len(rows) != 9*len(want) {
		b.Fatalf("rows %v, want %d", rows, len(want))
	}
	for i, n := range want {
		if got, _ := rows[9*i+2].Int64(); got != n {
			b.Errorf("row %d has %d intervals, want %d", i, got, n)
		}
	}
}

func (b *bench) unfinished(want int64) {
	b.Helper()
	rows := b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	if got, _ := rows[8].Int64(); got != want {
		b.Errorf("%d unfinished intervals, want %d", got, want)
	}
}

func TestProgramsCountAndTime(t *testing.T) {
	b, placer, p := startPlacing(t)
	region(b)
	b.runs("c_1", "fake", "it may")
	p.Reach(11, 0x10, 100)
	p.Reach(12, 0x10, 100)
	p.Reach(12, 0x20, 100)
	p.Reach(12, 0x10, 100)
	b.counts("2,[p_1,t_1,1,p_1,t_2,2]")
	b.intervals(0, 1)
	b.ask(": csr_disable([c_1,c_2])")
	p.Reach(11, 0x10, 100)
	b.counts("2,[p_1,t_1,1,p_1,t_2,2]")
	b.ask(": csr_enable([c_1,c_2])")
	p.Reach(11, 0x10, 100)
	b.counts("2,[p_1,t_1,2,p_1,t_2,2]")
	if placer.Placed() != 2 {
		t.Errorf("%d programs were placed, want 2: enabling again must not place a program again", placer.Placed())
	}
	b.ask(": pa_counter_reset([pa_c_1])")
	p.Reach(11, 0x10, 100)
	b.ask(": csr_delete([c_1,c_2])")
	b.counts("1,[p_1,t_1,1]")
	p.Reach(11, 0x10, 100)
	b.counts("1,[p_1,t_1,1]")
	if placer.Standing() != 0 || placer.Stores() != 0 || p.Watches() != 0 {
		t.Errorf("%d programs, %d stores, %d watches are left", placer.Standing(), placer.Stores(), p.Watches())
	}
}

// TestWhyPrograms checks that requests that no program can execute run by trap, with the reason.
func TestWhyPrograms(t *testing.T) {
	b, _, _ := startPlacing(t)
	b.ask(": pa_counter_create() pa_timer_create() pa_integrator_create() user_event_create() pa_trace_create(100)")
	for request, why := range map[string]string{
		"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1) print([])":          "print cannot be done outside of the monitor",
		"thread_reached_addr([],0x11) : {pa_counter_add([pa_c_1],1)}":                  "locked list",
		"thread_reached_addr([],0x12) : pa_counter_add([],1)":                          "objects to come",
		"thread_reached_addr([],0x13) : pa_integrator_add([pa_i_1],1)":                 "pa_integrator_add cannot be done outside",
		"thread_creates_thread([]) : pa_counter_add([pa_c_1],1)":                       "its actions need nothing but the event",
		"thread_has_started_lib_call([],\"read\") : pa_counter_add([pa_c_1],$par1)":    "its actions need nothing but the event",
		"thread_has_started_sys_call([],\"read\") : pa_trace_add([pa_b_1],$par1)":      "a mark must be constant, but an event parameter may change with each hit",
		"thread_has_started_sys_call([],\"read\") : pa_counter_add($par1,1)":           "pa_counter_add takes its objects from the event",
		"thread_reached_addr([],0x14) : pa_counter_add([pa_c_1],0x8000000000000000)":   "does not fit",
		"thread_reached_addr([],0x15) : pa_counter_add([pa_c_1],1) pa_timer_start([])": "objects to come",
	} {
		x, err := b.explain(request)
		if err != nil {
			t.Errorf("%s: %v", request, err)
		}
		if x.Placement.Name != "trap" || !strings.Contains(x.Placement.Why, why) {
			t.Errorf("%s: %s, want %q", request, x.Placement, why)
		}
	}
	c := b.listen("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)", 0)
	b.ask(": csr_enable([])")
	b.runs("c_1", "trap", "wants a reply for each execution")
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n")
}

// TestExplainBeforeItExists explains requests whose counter or timer does not exist yet.
func TestExplainBeforeItExists(t *testing.T) {
	b, placer, _ := startPlacing(t)
	for _, list := range []string{"pa_counter_add([pa_c_1],1)", "pa_timer_start([pa_t_1])", "pa_counter_add([pa_c_1],1) pa_timer_stop([pa_t_1])"} {
		if x, err := b.explain("thread_reached_addr([],0x10) : " + list); err != nil || x.Placement.Name != placer.Name() {
			t.Errorf("%s: %s, %v", list, x.Placement, err)
		}
	}
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask(": pa_counter_delete([pa_c_1])")
	b.runs("c_1", "trap", "an object of the list does not exist")
}

// TestIntervalsStayTogether checks that the requests that open and close an interval have the same
// placement, and that changing it loses no measurement.
func TestIntervalsStayTogether(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(w node.Watch) error {
		if w.Addr == 0x30 {
			return &program.Refusal{Why: "not there"}
		}
		return nil
	}
	region(b)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	p.Reach(11, 0x10, 100)
	b.ask("thread_reached_addr([],0x30) : pa_timer_stop([pa_t_1])")
	b.runs("c_3", "trap", "not there")
	b.runs("c_1", "fake", "")
	b.ask(": csr_enable([c_3])")
	b.runs("c_1", "trap", "c_3, which opens or closes the same intervals")
	b.runs("c_2", "trap", "which opens or closes the same intervals")
	p.Reach(11, 0x30, 100) // the interval began in another placement
	p.Reach(12, 0x10, 100)
	p.Reach(12, 0x30, 100)
	b.counts("2,[p_1,t_1,2,p_1,t_2,1]")
	b.intervals(1, 1)
	b.unfinished(1)
	// While c_3 is enabled, the other requests of the timer run by trap too.
	b.ask("thread_reached_addr([],0x40) : pa_timer_start([pa_t_1])")
	b.ask(": csr_enable([c_4]) csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	b.runs("c_4", "trap", "executed by the monitor")
	b.runs("c_1", "trap", "executed by the monitor")
	b.ask(": csr_disable([c_1,c_2,c_3,c_4]) csr_enable([c_1,c_2])")
	b.runs("c_1", "fake", "")
	if placer.Standing() != 2 {
		t.Errorf("%d programs are placed", placer.Standing())
	}
}

// TestBreakpointAtTheSameAddress checks that no program is placed at the address of a breakpoint.
func TestBreakpointAtTheSameAddress(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask(": csr_enable([c_1])")
	p.Reach(11, 0x10, 0)
	b.ask(": csr_enable([c_2])")
	b.runs("c_1", "trap", "a breakpoint of c_2 stands at the same address")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,2]")
	b.ask(": csr_enable([c_3])")
	b.runs("c_3", "trap", "a breakpoint of another request stands at 0x10")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,4]")
	if placer.Standing() != 0 {
		t.Errorf("%d programs are placed", placer.Standing())
	}
	// A breakpoint also removes the program of a disabled request.
	b.ask(": csr_delete([c_1,c_2,c_3])")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_4]) csr_disable([c_4])")
	if placer.Standing() != 1 {
		t.Errorf("%d programs are placed, want the inactive one", placer.Standing())
	}
	b.ask(": csr_enable([c_5])")
	if placer.Standing() != 0 {
		t.Errorf("%d programs are placed", placer.Standing())
	}
}

func TestNamedThreads(t *testing.T) {
	b, _, p := startPlacing(t)
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([t_2],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x20) : pa_counter_add([pa_c_1],100)")
	b.ask(": csr_enable([])")
	b.runs("c_1", "fake", "")
	p.Reach(11, 0x10, 0)
	p.Reach(12, 0x10, 0)
	b.counts("1,[p_1,t_2,1]")
	b.ask(": thread_detach([t_1])")
	b.runs("c_2", "trap", "detached from a thread")
	p.Reach(11, 0x20, 0)
	p.Reach(12, 0x20, 0)
	b.counts("1,[p_1,t_2,101]")
}

// TestProgramWithoutItsCounter checks that a request whose counter was deleted reports that at each
// execution.
func TestProgramWithoutItsCounter(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.ask(": pa_counter_create()")
	c := b.listen("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)", omis.DontReturnOK|omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	b.runs("c_1", "fake", "")
	p.Reach(11, 0x10, 0)
	c.quiet()
	b.ask(": pa_counter_delete([pa_c_1])")
	b.runs("c_1", "trap", "pa_c_1 does not exist any more")
	p.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_UNKNOWN_OBJECT(24) [pa_c_1] \"no such pa_c token: pa_c_1\"\n")
	if placer.Stores() != 0 {
		t.Error("the store of a deleted counter is left")
	}
}

// TestProgramsEnd checks that the measurements of programs remain after an exec, after the tool has
// detached, and after the end of the process.
func TestProgramsEnd(t *testing.T) {
	b, placer, p := startPlacing(t)
	region(b)
	p.Reach(11, 0x10, 0)
	placer.Exec(p.ID)
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,1]")
	b.ask(": csr_disable([c_1,c_2]) csr_enable([c_1,c_2])")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,2]")
	if placer.Standing() != 2 || placer.Placed() != 4 {
		t.Errorf("%d of %d programs are placed", placer.Standing(), placer.Placed())
	}
	b.ask(": csr_disable([c_2])")
	b.ask(": proc_detach([p_1])")
	if placer.Standing() != 0 || placer.Stores() != 0 {
		t.Errorf("after proc_detach %d programs are placed, and there are %d stores", placer.Standing(), placer.Stores())
	}
	b.counts("1,[p_1,t_1,2]")
	b.ask(": proc_attach([p_1])")
	p.Reach(12, 0x10, 0)
	b.counts("2,[p_1,t_1,2,p_1,t_2,1]")
	p.End()
	eventually(t, func() bool { return placer.Standing() == 0 && placer.Stores() == 0 })
	b.counts("2,[p_1,t_1,2,p_1,t_2,1]")
}

// TestDisabledProgramsAreRemoved checks that the programs of a request that stays disabled are
// removed, and that its measurements remain.
func TestDisabledProgramsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, placer, p := startPlacing(t)
		region(b)
		p.Reach(11, 0x10, 0)
		b.ask(": csr_disable([c_1,c_2])")
		if placer.Standing() != 2 {
			t.Errorf("%d programs are placed immediately after csr_disable", placer.Standing())
		}
		eventually(t, func() bool { return placer.Standing() == 0 && placer.Stores() == 0 })
		b.counts("1,[p_1,t_1,1]")
		b.ask(": csr_enable([c_1,c_2])")
		b.runs("c_1", "fake", "")
		p.Reach(11, 0x10, 0)
		b.counts("1,[p_1,t_1,2]")
	})
}

// TestRowsOfFormerThreads checks that threads that have the same number one after the other have
// different rows and tokens.
func TestRowsOfFormerThreads(t *testing.T) {
	b, placer, p := startPlacing(t)
	began := uint64(1)
	placer.Started = func(tid int) uint64 {
		if tid == 12 {
			return began
		}
		return 0
	}
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask(": csr_enable([])")
	for ; began < 4; began++ {
		p.Reach(12, 0x10, 0)
	}
	p.Reach(11, 0x10, 0)
	b.counts("4,[p_1,t_2,1,p_1,t_3,1,p_1,t_4,1,p_1,t_1,1]")
	b.counts("4,[p_1,t_2,1,p_1,t_3,1,p_1,t_4,1,p_1,t_1,1]")
	p.Reach(12, 0x10, 0)
	b.counts("5,[p_1,t_2,1,p_1,t_3,1,p_1,t_4,1,p_1,t_1,1,p_1,t_5,1]")
}

// TestCheckpointMovesPrograms checks that the programs of a process are removed while it is saved, and
// placed again afterwards, even if saving fails. The process is suspended meanwhile.
func TestCheckpointMovesPrograms(t *testing.T) {
	b, placer, p := startPlacing(t)
	region(b)
	b.ask("thread_reached_addr([],0x30) : pa_counter_add([pa_c_1],1)")
	b.ask(": csr_enable([c_3]) csr_disable([c_3])")
	p.Reach(11, 0x10, 0)
	var refused error
	placer.Node.Script = func(method string) error {
		switch suspended := p.Threads[0].Suspended > 0 && p.Threads[1].Suspended > 0; {
		case method == "Checkpoint" && placer.Standing() > 0:
			return errors.New("there are programs in the code")
		case method == "Checkpoint" && !suspended:
			return errors.New("the process is not suspended")
		case method == "Checkpoint":
			return refused
		}
		return nil
	}
	for i, want := range []string{"0 OMIS_OK []\n1 OMIS_OK []\n", "0 OMIS_OK []\n1 OMIS_UNSPECIFIED_ERROR(1000) [p_1] \"the disk is full\"\n"} {
		b.want(`: proc_checkpoint([p_1],"x")`, want)
		b.runs("c_1", "fake", "it may")
		b.runs("c_2", "fake", "it may")
		if placer.Standing() != 2 || p.Threads[0].Suspended > 0 {
			t.Errorf("%d programs are placed, %d suspensions are left", placer.Standing(), p.Threads[0].Suspended)
		}
		p.Reach(11, 0x10, 0)
		p.Reach(11, 0x30, 0)
		b.counts(fmt.Sprintf("1,[p_1,t_1,%d]", i+2))
		refused = errors.New("the disk is full")
	}
	// A request whose program cannot be placed again runs by trap.
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "not any more"} }
	refused = nil
	b.want(`: proc_checkpoint([p_1],"x")`, "0 OMIS_OK []\n1 OMIS_OK []\n")
	b.runs("c_1", "trap", "not any more")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,4]")
}

// TestFinalizedToolsPrograms checks that finalizing a tool removes its programs.
func TestFinalizedToolsPrograms(t *testing.T) {
	b, placer, _ := startPlacing(t)
	other := b.engine.Tool("other")
	for _, request := range []string{
		`: proc_attach([p_1]) pa_counter_create()`,
		"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)", ": csr_enable([])", ": csr_disable([])",
		"thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)", ": csr_enable([c_2])",
	} {
		r, err := other.Request(context.Background(), request, nil, 0)
		if err != nil || r.Err() != nil {
			t.Fatal(request, err, syntax.PrintReply(r))
		}
	}
	if placer.Standing() != 2 {
		t.Errorf("%d programs are placed", placer.Standing())
	}
	if err := other.Finalize(); err != nil {
		t.Fatal(err)
	}
	if placer.Standing() != 0 || placer.Stores() != 0 {
		t.Errorf("%d programs, %d stores are left", placer.Standing(), placer.Stores())
	}
}

// TestProgramsGiveWayToLibraryCalls checks that no program is placed while a request watches library
// calls, because their breakpoints may be at any address.
func TestProgramsGiveWayToLibraryCalls(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask(`thread_has_started_lib_call([],"malloc") : print([])`)
	b.ask(": csr_enable([c_1])")
	p.Reach(11, 0x10, 0)
	b.ask(": csr_enable([c_2])")
	b.runs("c_1", "trap", "c_2 looks out for library calls")
	p.Reach(11, 0x10, 0)
	b.ask(": csr_disable([c_1]) csr_enable([c_1])")
	b.runs("c_1", "trap", "another request looks out for library calls")
	p.Reach(11, 0x10, 0)
	b.ask(": csr_delete([c_2]) csr_disable([c_1]) csr_enable([c_1])")
	b.runs("c_1", "fake", "")
	p.Reach(11, 0x10, 0)
	b.counts("1,[p_1,t_1,4]")
	if placer.Placed() != 2 || placer.Standing() != 1 {
		t.Errorf("%d of %d programs are placed", placer.Standing(), placer.Placed())
	}
}

// TestProgramsGiveWayToWriters checks that a request runs by trap after a tool has written to the code
// at its address: the node knows the bytes below its breakpoints.
func TestProgramsGiveWayToWriters(t *testing.T) {
	b, _, p := startPlacing(t)
	p.Memory, p.MemoryAt = make([]byte, 64), 0x10
	b.ask(": pa_counter_create()")
	b.ask("thread_reached_addr([],0x18) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x40) : pa_counter_add([pa_c_1],1)")
	b.ask(": csr_enable([])")
	b.want(": proc_write_memory([p_1],0x19,1,1,[1])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	b.runs("c_1", "trap", "its code was written to")
	b.runs("c_2", "fake", "")
}
