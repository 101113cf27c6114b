package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// cpuRegion measures the CPU time of a function in the monitor.
func cpuRegion(b *bench) {
	b.Helper()
	b.must(`: pa_timer_create2("cpu")`)
	timeRegion(b)
}

// TestCPUTimeOfHeldThreads checks that the monitor measures the CPU time of the held thread, not the
// elapsed time, and does not subtract the cost of holding the thread.
func TestCPUTimeOfHeldThreads(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	b.node.SetCost("trap", "ptrace", program.Cost{After: 1e9, Before: 1e9})
	cpuRegion(b)
	for _, used := range []int64{3000, 5000} {
		b.node.Use(11, 1e6)
		b.node.Use(12, 1e6)
		p.Reach(11, 0x10, 100)
		b.node.Use(11, used)
		b.node.Use(12, 7)
		p.Reach(11, 0x20, 100)
	}
	b.intervals(2)
	row := b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	for i, want := range map[int]float64{3: 5000, 4: 8000, 6: 3000, 7: 5000} {
		if got := row[i].Float * 1e9; math.Abs(got-want) > 0.001 {
			t.Errorf("component %d is %g ns, want %g", i, got, want)
		}
	}
}

// TestNoCPUTime checks that a timer measures nothing if the CPU time is unknown, and that each
// execution replies with the reason.
func TestNoCPUTime(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	b.ask(`: pa_timer_create2("cpu")`)
	c := b.listen("thread_has_blocked([]) : pa_timer_start([pa_t_1])", omis.DontReturnOK|omis.DontReturnEnDis)
	b.ask(": csr_enable([c_1])")
	<-p.Hit(node.EventBlocked, node.Hit{TID: 11})
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_UNSUPPORTED_SERVICE(20) [pa_t_1] \"no thread is held at this event, whose CPU time could be told: it goes on\"\n")
	b.intervals()
	b.node.Script = func(method string) error {
		if method == "CPUTime" {
			return errors.New("no such clock")
		}
		return nil
	}
	<-p.Hit(node.EventBlocked, node.Hit{TID: 11, Held: node.HeldByPtrace})
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_UNSPECIFIED_ERROR(1000) [pa_t_1] \"no such clock\"\n")
	b.intervals()
	if got := b.ask(": pa_timer_start([pa_t_1])"); !strings.Contains(got, "only events can start and stop a timer") {
		t.Errorf("without an event: %s", got)
	}
}

// TestCPUTimeOfWaitingLists checks that a list that waits for another one measures the CPU time of
// its own thread.
func TestCPUTimeOfWaitingLists(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	b.ask(`: pa_timer_create2("cpu")`)
	b.ask("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1]) proc_get_info([],1)")
	b.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1]) proc_get_info([],1)")
	b.ask(": csr_enable([c_1,c_2])")
	first := p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x10, SP: 100, Held: node.HeldByPtrace})
	second := p.Hit(node.EventReachedAddr, node.Hit{TID: 12, Addr: 0x10, SP: 100, Held: node.HeldByPtrace})
	<-first
	<-second
	b.node.Use(11, 3000)
	b.node.Use(12, 4000)
	first = p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x20, SP: 100, Held: node.HeldByPtrace})
	second = p.Hit(node.EventReachedAddr, node.Hit{TID: 12, Addr: 0x20, SP: 100, Held: node.HeldByPtrace})
	<-first
	<-second
	b.intervals(1, 1)
	row := b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	for i, want := range map[int]float64{4: 3000, 13: 4000} {
		if got := row[i].Float * 1e9; math.Abs(got-want) > 0.001 {
			t.Errorf("component %d is %g ns, want %g", i, got, want)
		}
	}
}
