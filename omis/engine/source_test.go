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

// spanOver measures a function by a timer over pa_c_1, which counts system calls.
func spanOver(b *bench) {
	b.Helper()
	b.must(": pa_counter_create()", `: pa_timer_over_counter([pa_c_1],1,"sums")`)
	watchSpan(b)
}

func watchSpan(b *bench) {
	b.Helper()
	b.must("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])", "thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])",
		`thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`)
}

// execute makes a thread execute the function, with a number of system calls before and during it.
func execute(p *fake.Process, tid, before, during int) {
	call := func(n int) {
		for range n {
			p.SysCall(tid, "getppid", omis.Int(0))
		}
	}
	call(before)
	p.Reach(tid, 0x10, 100)
	call(during)
	p.Reach(tid, 0x20, 100)
}

// gained checks the values of pa_t_1 in total: number, last, sum and unfinished.
func (b *bench) gained(count, last, sum, unfinished int64) {
	b.Helper()
	row := b.reply(": pa_timer_exact([pa_t_1],2)")[1][0].Values[1].List
	for i, want := range map[int]int64{2: count, 3: last, 5: sum, 10: unfinished} {
		if got, _ := row[i].Int64(); got != want {
			b.Errorf("value %d is %d, want %d, of %v", i, got, want, row)
		}
	}
}

// TestProgramsReadSources checks that a timer over a counter runs where the counter is changed, and that no
// placement changes a source that its programs cannot read.
func TestProgramsReadSources(t *testing.T) {
	b, places, p := startPlacers(t, "blind", "seeing")
	places[0].Blind = true
	spanOver(b)
	b.must(": csr_enable([c_1,c_2,c_3])")
	for _, c := range []omis.Token{"c_1", "c_2", "c_3"} {
		b.runs(c, "seeing", "")
	}
	b.runs("c_3", "seeing", "blind: a timer reads what it counts")
	execute(p, 11, 3, 5)
	execute(p, 12, 0, 2)
	b.gained(2, 2, 7, 0)
}

// TestMonitorReadsSources checks that the monitor adds what programs and it itself have counted.
func TestMonitorReadsSources(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(w node.Watch) error {
		if w.Event == node.EventReachedAddr {
			return &program.Refusal{Why: "no room"}
		}
		return nil
	}
	spanOver(b)
	b.must(`thread_has_been_scheduled([]) : pa_counter_add([pa_c_1],100)`, ": csr_enable([c_1,c_2,c_3,c_4])")
	b.runs("c_1", "trap", "no room")
	b.runs("c_3", "trap", "threads are held")
	b.runs("c_4", "fake", "")
	p.Hit(node.EventScheduled, node.Hit{TID: 11})
	p.Reach(11, 0x10, 100)
	p.SysCall(11, "getppid", omis.Int(0))
	p.Hit(node.EventScheduled, node.Hit{TID: 11})
	p.Hit(node.EventScheduled, node.Hit{TID: 12})
	p.Reach(11, 0x20, 100)
	b.gained(1, 101, 101, 0)
}

// TestReadersFollowSources checks that the monitor reads a source from the moment on at which it executes a request
// that changes the source.
func TestReadersFollowSources(t *testing.T) {
	b, _, p := startPlacing(t)
	spanOver(b)
	b.must(": csr_enable([c_1,c_2,c_3])")
	execute(p, 11, 1, 4)
	b.gained(1, 4, 4, 0)
	p.Reach(11, 0x10, 100)
	b.must(": pa_integrator_create()", `thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1) pa_integrator_add([pa_i_1],1.0)`, ": csr_enable([c_4])")
	b.runs("c_1", "trap", "c_4, which changes what it reads, is executed elsewhere")
	p.Reach(11, 0x20, 100)
	b.gained(1, 4, 4, 1)
	execute(p, 12, 1, 3) // c_3 and c_4 count each call
	b.gained(2, 6, 10, 1)
}

// TestLateSourcesAreRefused checks that the monitor measures nothing by a source whose changes it learns of too late.
func TestLateSourcesAreRefused(t *testing.T) {
	b := start(t, pa.New())
	b.node.Add(1, nil, 11)
	b.must(`: proc_attach3([],1,"")`, ": pa_counter_create()", `: pa_timer_over_counter([pa_c_1],1,"sums")`,
		"thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])", "thread_has_blocked([]) : pa_counter_add([pa_c_1],1)")
	if got := b.ask(": csr_enable([c_1,c_2])"); !strings.Contains(got, "learns of the scheduling of threads too late") {
		t.Error(got)
	}
}

// TestResetOfSource checks that an interval in which the source is reset counts as unfinished.
func TestResetOfSource(t *testing.T) {
	for name, refuse := range map[string]func(node.Watch) error{"program": nil, "monitor": func(node.Watch) error { return &program.Refusal{Why: "no"} }} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			placer.Refuse = refuse
			spanOver(b)
			b.must(": csr_enable([c_1,c_2,c_3])")
			execute(p, 11, 0, 4)
			p.Reach(11, 0x10, 100)
			b.must(": pa_counter_reset([pa_c_1])")
			p.Reach(11, 0x20, 100)
			b.gained(1, 4, 4, 1)
		})
	}
}

// TestTakenSources checks that pa_timer_take measures the present value of a source, and nothing else.
func TestTakenSources(t *testing.T) {
	for name, refuse := range map[string]func(node.Watch) error{"program": nil, "monitor": func(node.Watch) error { return &program.Refusal{Why: "no"} }} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			placer.Refuse = refuse
			b.must(": pa_counter_create()", `: pa_timer_over_counter([pa_c_1],1,"sums")`,
				"thread_reached_addr([],0x10) : pa_timer_take([pa_t_1])", `thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`,
				": csr_enable([c_1,c_2])")
			execute(p, 11, 2, 3)
			execute(p, 11, 1, 0)
			b.gained(2, 6, 8, 0)
		})
	}
}

// TestKeptSources checks that programs that read a source continue when the monitor is killed, and that the next one
// adopts them.
func TestKeptSources(t *testing.T) {
	b, placer, p := startPlacing(t)
	spanOver(b)
	keepBoth(b)
	b.must(": csr_enable([c_1,c_2,c_3])")
	execute(p, 11, 1, 4)
	placer = killed(t, placer)
	execute(p, 12, 1, 6)
	b = startAlone(t, placer)
	b.must(`: proc_attach3([],1,"") pa_counter_create()`, `: pa_timer_over_counter([pa_c_1],1,"sums")`)
	keepBoth(b)
	watchSpan(b)
	b.must(": csr_enable([c_1,c_2,c_3])")
	if n := placer.Placed(); n != 3 {
		t.Errorf("%d programs, want the 3 of the former monitor", n)
	}
	execute(p, 12, 0, 1)
	b.gained(3, 1, 11, 0)
}

// TestWrongClocks checks the errors of timers over other objects.
func TestWrongClocks(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	b.must(": pa_counter_create() pa_timer_create()")
	for request, want := range map[string]string{
		`: pa_timer_over_counter([pa_c_1],0,"sums")`: "one in 1 to",
		`: pa_timer_over_counter([pa_c_1],1,"all")`:  "cannot keep",
		`: pa_timer_over_timer([pa_c_1],1,"sums")`:   "pa_c_1",
		`: pa_timer_take([pa_t_1])`:                  "only events",
	} {
		if got := b.ask(request); !strings.Contains(got, want) {
			t.Errorf("%s: %s", request, got)
		}
	}
	b.must("thread_reached_addr([],0x10) : pa_timer_take([pa_t_1])", `: pa_timer_create2("queued")`,
		"thread_reached_addr([],0x20) : pa_timer_start([pa_t_2])", ": csr_enable([c_1])")
	p.Reach(11, 0x10, 1)
	b.intervals()
	if got := b.ask(": csr_enable([c_2])"); !strings.Contains(got, "to hold the thread changes it") {
		t.Error(got)
	}
}

// TestGroupOfThreads checks that a timer of a group measures all threads of the group, whichever thread executes the
// function.
func TestGroupOfThreads(t *testing.T) {
	for name, c := range map[string]struct{ threads, want string }{
		"all":          {"[]", "t_1 2 3 0, t_2 2 3 0, t_3 2 0 0"},
		"named":        {"[t_2,t_3]", "t_1 0 0 0, t_2 2 3 0, t_3 2 0 0"},
		"of a process": {"[p_1]", "t_1 2 3 0, t_2 2 3 0, t_3 2 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, p := startPlacing(t)
			p.Spawn(11, 13)
			b.must(": pa_counter_create()", ": pa_timer_over_counter2([pa_c_1],1,\"sums\","+c.threads+")")
			watchSpan(b)
			b.must(": csr_enable([c_1,c_2,c_3])")
			b.runs("c_1", "trap", "it measures other threads than the one that executes it")
			call := func(tid int) { p.SysCall(tid, "getppid", omis.Int(0)) }
			call(12)
			p.Reach(11, 0x10, 100)
			call(11)
			call(12)
			call(12)
			p.Reach(11, 0x20, 100)
			call(11)
			p.Reach(12, 0x10, 50)
			call(11)
			call(11)
			call(12)
			p.Reach(12, 0x20, 50)
			var got []string
			for l := b.reply(": pa_timer_exact([pa_t_1],0)")[1][0].Values[1].List; len(l) > 0; l = l[11:] {
				got = append(got, fmt.Sprint(l[1].Token(), " ", l[2].N, " ", l[5].N, " ", l[10].N))
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestThreadsOfExecutingProcess checks that a timer can measure all threads of the process whose thread executes the
// function, and no others, and that of a sample each thread has the number of all intervals.
func TestThreadsOfExecutingProcess(t *testing.T) {
	b, _, p := startPlacing(t)
	q := b.node.Add(2, []string{"other"}, 21, 22)
	b.ask(`: proc_attach3([],2,"")`)
	b.must(": thread_get_info([p_1],1) thread_get_info([p_2],1)", ": pa_counter_create()",
		`: pa_timer_over_counter3([pa_c_1],1,"sums") pa_timer_over_counter2([pa_c_1],4,"sums",[t_1,t_3])`,
		": pa_timer_create()", `: pa_timer_over_timer3([pa_t_3],1,"sums")`)
	for addr, do := range map[string]string{"0x10": "start", "0x20": "stop"} {
		b.must(fmt.Sprintf("thread_reached_addr([],%s) : pa_timer_%s([pa_t_1]) pa_timer_%[2]s([pa_t_2]) pa_timer_%[2]s([pa_t_4])", addr, do))
	}
	b.must(`thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`, ": csr_enable([c_1,c_2,c_3])")
	execute := func(p *fake.Process, tid, other int) {
		p.Reach(tid, 0x10, 100)
		p.SysCall(other, "getppid", omis.Int(0))
		p.Reach(tid, 0x20, 100)
	}
	for range 8 {
		execute(p, 11, 12)
	}
	for range 4 {
		execute(q, 21, 22)
	}
	rows := func(request string, width int, shown ...int) string {
		var got []string
		for l := b.reply(request)[1][0].Values[1].List; len(l) > 0; l = l[width:] {
			text := string(l[1].Token())
			for _, i := range shown {
				text += fmt.Sprint(" ", l[i].N)
			}
			got = append(got, text)
		}
		slices.Sort(got)
		return strings.Join(got, ", ")
	}
	if got, want := rows(": pa_timer_exact([pa_t_1],0)", 11, 2, 5), "t_1 8 0, t_2 8 8, t_3 4 0, t_4 4 4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := rows(": pa_timer_exact([pa_t_4],0)", 11, 2, 5), "t_1 8 0, t_2 8 0, t_3 4 0, t_4 4 0"; got != want {
		t.Errorf("over a timer %s, want %s", got, want)
	}
	if got, want := rows(": pa_timer_estimate([pa_t_2],0)", 11, 2, 3), "t_1 12 3, t_3 12 3"; got != want {
		t.Errorf("of a sample %s, want %s", got, want)
	}
}

// TestCountsOfGroup checks that a timer of a group measures what the kernel counts for its threads, and which clocks it
// cannot have.
func TestCountsOfGroup(t *testing.T) {
	b, _, p := startPlacing(t)
	if got := b.ask(`: pa_timer_create5("queued",1,"sums",[t_2])`); !strings.Contains(got, "to hold the thread changes it") {
		t.Error(got)
	}
	b.must(`: pa_timer_create5("page-faults",1,"sums",[t_2])`, "thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])",
		"thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])", ": csr_enable([c_1,c_2])")
	p.Threads[1].Info.Usage = node.Usage{MinorFaults: 5, MajorFaults: 1}
	p.Reach(11, 0x10, 100)
	p.Threads[1].Info.Usage = node.Usage{MinorFaults: 12, MajorFaults: 3}
	p.Reach(11, 0x20, 100)
	row := b.reply(": pa_timer_exact([pa_t_1],0)")[1][0].Values[1].List[11:]
	if len(row) != 11 || row[1].Token() != "t_2" || row[2].N != 1 || row[5].N != 9 {
		t.Errorf("%v, want an interval of t_2 with 9 page faults", row)
	}
}

// TestGroupAtInstant checks that pa_timer_take measures the values of a group, and that ended threads have none.
func TestGroupAtInstant(t *testing.T) {
	b, _, p := startPlacing(t)
	b.must(": pa_counter_create()", `: pa_timer_over_counter2([pa_c_1],1,"sums",[])`,
		"thread_reached_addr([],0x10) : pa_timer_take([pa_t_1])", `thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`,
		": csr_enable([c_1,c_2])")
	p.SysCall(12, "getppid", omis.Int(0))
	p.Reach(11, 0x10, 100)
	p.SysCall(12, "getppid", omis.Int(0))
	p.EndThread(12)
	p.Reach(11, 0x10, 100)
	row := b.reply(": pa_timer_exact([pa_t_1],2)")[1][0].Values[1].List
	if row[2].N != 3 || row[5].N != 1 {
		t.Errorf("%v, want 3 values, 1 in all", row)
	}
}
