package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// sampledRegion measures a function, of whose intervals one in four is timed.
func sampledRegion(b *bench) {
	b.Helper()
	for _, request := range []string{
		`: pa_timer_create3("fast",4)`,
		"thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])",
		"thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])",
		": csr_enable([c_1,c_2])",
	} {
		if err := b.reply(request).Err(); err != nil {
			b.Fatalf("%s: %v", request, err)
		}
	}
}

// estimated checks the first row of an estimate: how many intervals began, how many were
// timed, and how many of these never ended.
func (b *bench) estimated(level int, begun, timed, unfinished int64) {
	b.Helper()
	row := b.reply(fmt.Sprintf(": pa_timer_estimate([pa_t_1],%d)", level))[1][0].Values[1].List
	if len(row)%11 != 0 || len(row) == 0 {
		b.Fatalf("rows %v", row)
	}
	for i, want := range map[int]int64{2: begun, 3: timed, 9: unfinished} {
		if got, _ := row[i].Int64(); got != want {
			b.Errorf("level %d: component %d is %d, want %d", level, i, got, want)
		}
	}
	// Each takes at least as long as the shortest, and at most as long as the longest.
	if n := float64(begun - unfinished); timed > 0 && unfinished == 0 && (row[5].Float < n*row[7].Float*0.999 || row[5].Float > n*row[8].Float*1.001) {
		b.Errorf("level %d: the sum is %g: %d from %g to %g", level, row[5].Float, begun, row[7].Float, row[8].Float)
	}
}

// calls calls a function in each of its threads, one within the other.
func calls(p interface{ Reach(int, uint64, uint64) }, n int, threads ...int) {
	for range n {
		for _, tid := range threads {
			p.Reach(tid, 0x10, 100)
			p.Reach(tid, 0x10, 90)
			p.Reach(tid, 0x20, 90)
			p.Reach(tid, 0x20, 100)
		}
	}
}

// All intervals are counted, and one in so many is timed, whether programs do that or
// the monitor, or the one after the other.
func TestSampledIntervals(t *testing.T) {
	for name, refuse := range map[string]bool{"by programs": false, "by the monitor": true} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			if refuse {
				placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "it is to"} }
			}
			sampledRegion(b)
			calls(p, 10, 11, 12)
			b.estimated(0, 20, 5, 0)
			b.estimated(1, 40, 10, 0)
			b.estimated(2, 40, 10, 0)
			b.intervals(5, 5)
			b.ask(": pa_timer_reset([pa_t_1])")
			calls(p, 2, 11)
			b.estimated(0, 4, 1, 0)
		})
	}
}

// What is known of intervals outlasts the programs.
func TestSampledIntervalsMove(t *testing.T) {
	b, placer, p := startPlacing(t)
	sampledRegion(b)
	if op := placer.Programs()[0][0]; op.OneIn != 4 {
		t.Errorf("of a timer of one in four one in %d is timed", op.OneIn)
	}
	calls(p, 6, 11)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])") // moves the others to the monitor
	b.runs("c_1", "trap", "breakpoint")
	b.estimated(0, 12, 3, 0)
	calls(p, 2, 11)
	b.estimated(0, 16, 4, 0)
}

// One that is open when its program goes counts as unfinished, and only once.
func TestSampledIntervalIsOpen(t *testing.T) {
	b, _, p := startPlacing(t)
	sampledRegion(b)
	p.Reach(11, 0x10, 100) // the fake times the first of four
	p.Reach(11, 0x10, 90)
	p.Reach(11, 0x20, 90) // is not timed, and must not end the other
	b.estimated(0, 2, 0, 0)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])")
	b.estimated(0, 2, 0, 1)
}

// A timer that times all estimates what it knows.
func TestEstimateOfAll(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	region(b)
	calls(p, 3, 11)
	b.estimated(0, 6, 6, 0)
	told, read := b.reply(": pa_timer_estimate([pa_t_1],0)")[1][0].Values[1].List, b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	for i, at := range map[int]int{4: 3, 5: 4, 6: 5, 7: 6, 8: 7} {
		if told[i].Float != read[at].Float {
			t.Errorf("component %d of what is estimated is %g, and was %g", i, told[i].Float, read[at].Float)
		}
	}
	if deviation := told[10].Float; deviation != 0 {
		t.Errorf("what is known is uncertain by %g", deviation)
	}
}

func TestSampledTimersAreChecked(t *testing.T) {
	b := start(t, pa.New())
	for _, arguments := range []string{`"ordered",0`, `"ordered",1000001`, `"sundial",5`} {
		var wrong *omis.Error
		if err := b.reply(": pa_timer_create3(" + arguments + ")").Err(); !errors.As(err, &wrong) || wrong.Status != omis.ParameterError {
			t.Errorf("pa_timer_create3(%s): %v", arguments, err)
		}
	}
}
