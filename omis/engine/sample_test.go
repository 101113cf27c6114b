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

// sampledRegion measures a function by a timer that times one in four intervals.
func sampledRegion(b *bench) {
	b.Helper()
	b.must(`: pa_timer_create3("fast",4)`)
	timeRegion(b)
}

// estimated checks the first row of an estimate: the numbers of all intervals, of timed ones, and
// of timed ones that never ended.
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
	// The sum must be possible with these limits of a single interval.
	if n := float64(begun - unfinished); timed > 0 && unfinished == 0 && (row[5].Float < n*row[7].Float*0.999 || row[5].Float > n*row[8].Float*1.001) {
		b.Errorf("level %d: the sum is %g: %d from %g to %g", level, row[5].Float, begun, row[7].Float, row[8].Float)
	}
}

// calls calls the region n times in each thread, with a nested call each time.
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

// TestSampledIntervals checks that programs and the monitor count all intervals, and time one in
// four.
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

// TestSampledIntervalsMove checks that a sampled timer keeps its intervals when the monitor replaces
// its programs.
func TestSampledIntervalsMove(t *testing.T) {
	b, placer, p := startPlacing(t)
	sampledRegion(b)
	if op := placer.Programs()[0][0]; op.OneIn != 4 {
		t.Errorf("the program times one in %d, want one in 4", op.OneIn)
	}
	calls(p, 6, 11)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])") // moves the other requests to trap
	b.runs("c_1", "trap", "breakpoint")
	b.estimated(0, 12, 3, 0)
	calls(p, 2, 11)
	b.estimated(0, 16, 4, 0)
}

// TestSampledIntervalIsOpen checks that an interval that is open when its program is removed counts
// as unfinished once.
func TestSampledIntervalIsOpen(t *testing.T) {
	b, _, p := startPlacing(t)
	sampledRegion(b)
	p.Reach(11, 0x10, 100) // the fake times the first of four
	p.Reach(11, 0x10, 90)
	p.Reach(11, 0x20, 90) // ends an interval that is not timed, and must not end the timed one
	b.estimated(0, 2, 0, 0)
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])")
	b.estimated(0, 2, 0, 1)
}

// TestEstimateOfAll checks that the estimate of a timer without sampling is exact.
func TestEstimateOfAll(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	region(b)
	calls(p, 3, 11)
	b.estimated(0, 6, 6, 0)
	estimate, exact := b.reply(": pa_timer_estimate([pa_t_1],0)")[1][0].Values[1].List, b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	for i, at := range map[int]int{4: 3, 5: 4, 6: 5, 7: 6, 8: 7} {
		if estimate[i].Float != exact[at].Float {
			t.Errorf("component %d of the estimate is %g, want %g", i, estimate[i].Float, exact[at].Float)
		}
	}
	if deviation := estimate[10].Float; deviation != 0 {
		t.Errorf("the standard error is %g, want 0", deviation)
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
