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

// spreadRegion measures a function by a timer that keeps a histogram.
func spreadRegion(b *bench) {
	b.Helper()
	b.must(`: pa_timer_create4("ordered",1,"histogram")`)
	timeRegion(b)
}

// spread checks the number of intervals in the buckets of each row, and that the percentiles lie
// between the shortest and the longest interval of the row.
func (b *bench) spread(level int, want ...int64) {
	b.Helper()
	reply := b.reply(fmt.Sprintf(": pa_timer_histogram([pa_t_1],%d) pa_timer_percentiles([pa_t_1],[0,50,100],%d) pa_timer_sum([pa_t_1],%d)", level, level, level))
	if err := reply.Err(); err != nil {
		b.Fatal(err)
	}
	rows, percentiles, sums := reply[1][0].Values[1].List, reply[2][0].Values[1].List, reply[3][0].Values[1].List
	if len(rows) != 4*len(want) || len(percentiles) != len(rows) || len(sums) != 9*len(want) {
		b.Fatalf("rows %v, percentiles %v, sums %v, want %d", rows, percentiles, sums, len(want))
	}
	for i, n := range want {
		count, _ := rows[4*i+2].Int64()
		var all int64
		for buckets := rows[4*i+3].List; len(buckets) > 0; buckets = buckets[3:] {
			in, _ := buckets[2].Int64()
			all += in
		}
		if count != n || all != n {
			b.Errorf("row %d of level %d has %d intervals and %d in buckets, want %d", i, level, count, all, n)
		}
		p := percentiles[4*i+3].List
		if n == 0 {
			if len(p) != 0 {
				b.Errorf("a row without intervals has the percentiles %v", p)
			}
			continue
		}
		const tiny = 1e-12 // the error of floating point sums
		least, most := sums[9*i+6].Float, sums[9*i+7].Float
		if len(p) != 6 || p[0].Float-p[1].Float < least-tiny || p[4].Float+p[5].Float > most+tiny || p[2].Float < p[0].Float || p[2].Float > p[4].Float {
			b.Errorf("percentiles %v of %g to %g", p, least, most)
		}
	}
}

// TestHistograms checks that a histogram contains all intervals, measured by programs or by the
// monitor.
func TestHistograms(t *testing.T) {
	for name, refuse := range map[string]bool{"by programs": false, "by the monitor": true} {
		t.Run(name, func(t *testing.T) {
			b, placer, p := startPlacing(t)
			if refuse {
				placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "it is to"} }
			}
			spreadRegion(b)
			b.spread(2)
			calls(p, 10, 11, 12)
			b.spread(0, 20, 20)
			b.spread(1, 40)
			b.spread(2, 40)
			b.intervals(20, 20)
			p.Reach(12, 0x10, 100) // opens an interval
			b.spread(0, 20, 20)
			b.ask(": pa_timer_reset([pa_t_1])")
			p.Reach(11, 0x10, 100)
			b.spread(0, 0)
			p.Reach(11, 0x20, 100)
			b.spread(0, 1)
		})
	}
}

// TestHistogramsMove checks that a histogram keeps its intervals when the monitor replaces its
// programs.
func TestHistogramsMove(t *testing.T) {
	b, _, p := startPlacing(t)
	spreadRegion(b)
	calls(p, 6, 11)
	b.runs("c_1", "fake", "it may")
	b.ask("thread_reached_addr([],0x10) : print([])")
	b.ask(": csr_enable([c_3])") // moves the other requests to trap
	b.runs("c_1", "trap", "breakpoint")
	b.spread(0, 12)
	calls(p, 2, 11, 12)
	b.spread(0, 16, 4)
	b.spread(2, 20)
}

// TestKeptHistogram checks that a kept histogram continues without a monitor, and that the next
// monitor adopts it.
func TestKeptHistogram(t *testing.T) {
	b, placer, p := startPlacing(t)
	b.ask(`: pa_timer_create4("ordered",1,"histogram")`)
	if _, err := b.tool.Keep("pa_t_1", "time"); err != nil {
		t.Fatal(err)
	}
	timeRegion(b)
	calls(p, 3, 11)
	placer = killed(t, placer)
	calls(p, 4, 11)
	next := startAlone(t, placer)
	next.ask(`: proc_attach3([],1,"") pa_timer_create4("ordered",1,"histogram")`)
	if _, err := next.tool.Keep("pa_t_1", "time"); err != nil {
		t.Fatal(err)
	}
	next.spread(0, 14)
	timeRegion(next)
	calls(p, 1, 11)
	next.spread(0, 16)
	if left, err := next.engine.Settle(); err != nil || len(left) != 0 {
		t.Errorf("orphans %v, %v", left, err)
	}
}

func TestHistogramsAreChecked(t *testing.T) {
	b := start(t, pa.New())
	b.ask(`: pa_timer_create4("ordered",1,"sums") pa_timer_create4("fast",10,"histogram")`)
	for _, request := range []string{
		`pa_timer_create4("ordered",1,"diary")`, `pa_timer_create4("ordered",0,"histogram")`, `pa_timer_create4("sundial",1,"histogram")`,
		"pa_timer_histogram([pa_t_1],0)", "pa_timer_percentiles([pa_t_1],[50],0)", "pa_timer_histogram([pa_t_2],3)",
		"pa_timer_percentiles([pa_t_2],[50],-1)", "pa_timer_percentiles([pa_t_2],[100.1],0)", "pa_timer_percentiles([pa_t_2],[-1],0)", "pa_timer_percentiles([pa_t_2],[],0)",
	} {
		var wrong *omis.Error
		if err := b.reply(": " + request).Err(); !errors.As(err, &wrong) || wrong.Status != omis.ParameterError {
			t.Errorf("%s: %v", request, err)
		}
	}
	b.want(": pa_timer_percentiles([pa_t_2],[99.9],0)", "0 OMIS_OK []\n1 OMIS_OK [pa_t_2] 0,[]\n")
}
