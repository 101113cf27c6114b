package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
)

// TestCountersLive compares a counter with the witness's count.
func TestCountersLive(t *testing.T) {
	l, w := startWitness(t)
	counter, e := text(l.ask(t, "pa_counter_create()")[0]), text(l.ask(t, "user_event_create()")[0])
	third := text(l.ask(t, "pa_count_create(3, %s)", e)[0])
	l.define(t, "thread_reached_addr([p_1],%#x) : pa_counter_add([%s], 2) pa_combination_signal([%s], 1)", w.work, counter, third)
	raised := l.define(t, "user_event_has_been_raised(%s) : print([1])", e)
	w.says("work", 11)
	raised.await(t, 3)
	main := l.token(t, w.pid)
	wantText(t, "counter", text(omis.List(l.ask(t, "pa_counter_read([%s])", counter)...)), "1 p_1 "+main+" 22")
	wantText(t, "its sum", text(omis.List(l.ask(t, "pa_counter_sum([%s],2)", counter)...)), "1 u_0 u_0 22")
	l.ask(t, "pa_counter_reset([%s])", counter)
	w.says("work", 4)
	wantText(t, "counter after its reset", text(omis.List(l.ask(t, "pa_counter_read([%s])", counter)...)), "1 p_1 "+main+" 8")
	l.ask(t, "pa_counter_delete([%s])", counter)
	l.refused(t, omis.UnknownObject, "pa_counter_read([%s])", counter)
}

// TestTimersLive compares a timer with the times that the witness, the observed program, measures
// itself. They may be longer, by what the witness does around its calls.
func TestTimersLive(t *testing.T) {
	for _, create := range []string{`pa_timer_create()`, `pa_timer_create2("ordered")`, `pa_timer_create2("fast")`} {
		t.Run(create, func(t *testing.T) { timersLive(t, create) })
	}
}

func timersLive(t *testing.T, create string) {
	l, w := startWitness(t)
	timer := text(l.ask(t, "%s", create)[0])
	l.define(t, `thread_has_started_lib_call([p_1],"usleep") : pa_timer_start([%s])`, timer)
	l.define(t, `thread_has_ended_lib_call([p_1],"usleep") : pa_timer_stop([%s])`, timer)
	for range 2 {
		slept, err := strconv.ParseFloat(w.says("nap", 10)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range []string{"pa_timer_read([%s])", "pa_timer_sum([%s],0)"} {
			row := l.ask(t, service, timer)[1].List
			wantText(t, service, text(omis.List(row[0], row[1], row[2], row[8])), "p_1 "+l.token(t, w.pid)+" 10 0")
			last, sum, least, most := row[3].Float, row[4].Float, row[6].Float, row[7].Float
			if sum > slept || least < 0.002 || most > sum || last < least || last > most {
				t.Errorf("%s: %v, the witness has slept %v s", service, texts(row), slept)
			}
		}
		exact, row := l.ask(t, "pa_timer_exact([%s],0)", timer)[1].List, l.ask(t, "pa_timer_read([%s])", timer)[1].List
		ns := func(i int) float64 { n, _ := exact[i].Number(); return n }
		for what, pair := range map[string][2]float64{
			"count": {ns(2), float64(row[2].N)}, "last": {ns(3), row[3].Float * 1e9}, "sum": {ns(4)*(1<<64) + ns(5), row[4].Float * 1e9},
			"squares": {ns(6)*(1<<64) + ns(7), row[5].Float * 1e18}, "min": {ns(8), row[6].Float * 1e9}, "max": {ns(9), row[7].Float * 1e9},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*pair[1] {
				t.Errorf("%s of %s in nanoseconds, want %v", what, texts(exact), pair[1])
			}
		}
		l.ask(t, "pa_timer_reset([%s])", timer)
	}
	l.ask(t, "pa_timer_delete([%s])", timer)
	l.refused(t, omis.UnknownObject, "pa_timer_read([%s])", timer)
}

// TestSampledTimersLive checks a timer that times a part of the calls but counts all of them. The
// estimate for all calls must agree with the times of that part.
func TestSampledTimersLive(t *testing.T) {
	l, w := startWitness(t)
	timer := text(l.ask(t, `pa_timer_create3("ordered",5)`)[0])
	l.define(t, `thread_has_started_lib_call([p_1],"usleep") : pa_timer_start([%s])`, timer)
	l.define(t, `thread_has_ended_lib_call([p_1],"usleep") : pa_timer_stop([%s])`, timer)
	slept, err := strconv.ParseFloat(w.says("nap", 20)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	row := l.ask(t, "pa_timer_estimate([%s],0)", timer)[1].List
	wantText(t, "estimate", text(omis.List(row[0], row[1], row[2], row[3], row[9])), "p_1 "+l.token(t, w.pid)+" 20 4 0")
	sum, least, most, deviation := row[5].Float, row[7].Float, row[8].Float, row[10].Float
	if least < 0.002 || most > slept || sum < 20*least || sum > 20*most || deviation < 0 || deviation > 20*(most-least) {
		t.Errorf("%v, the witness has slept %v s", texts(row), slept)
	}
	wantText(t, "what was timed", text(l.ask(t, "pa_timer_read([%s])", timer)[1].List[2]), "4")
	l.refused(t, omis.ParameterError, `pa_timer_create3("ordered",0)`)
	l.refused(t, omis.ParameterError, `pa_timer_create3("sundial",5)`)
	l.refused(t, omis.ParameterError, "pa_timer_estimate([%s],3)", timer)
}

// TestHistogramsLive checks that each nap of the witness is in a bucket that agrees with the
// witness's own clock.
func TestHistogramsLive(t *testing.T) {
	l, w := startWitness(t)
	timer := text(l.ask(t, `pa_timer_create4("ordered",1,"histogram")`)[0])
	l.define(t, `thread_has_started_lib_call([p_1],"usleep") : pa_timer_start([%s])`, timer)
	l.define(t, `thread_has_ended_lib_call([p_1],"usleep") : pa_timer_stop([%s])`, timer)
	slept, err := strconv.ParseFloat(w.says("nap", 20)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	row := l.ask(t, "pa_timer_histogram([%s],0)", timer)[1].List
	wantText(t, "histogram", text(omis.List(row[0], row[1], row[2])), "p_1 "+l.token(t, w.pid)+" 20")
	var count int64
	var sum float64
	for buckets := row[3].List; len(buckets) > 0; buckets = buckets[3:] {
		least, most, n := buckets[0].Float, buckets[1].Float, buckets[2].N
		if most < 0.002 || least > most || most > 1.13*least {
			t.Errorf("%d naps took from %g to %g s", n, least, most)
		}
		count, sum = count+int64(n), sum+float64(n)*least
	}
	if count != 20 || sum > slept {
		t.Errorf("%d naps of %g s, the witness has slept 20 times, %g s", count, sum, slept)
	}
	row = l.ask(t, "pa_timer_percentiles([%s],[50.0,100.0],2)", timer)[1].List
	half, all := row[3].List[0].Float, row[3].List[2].Float
	if half < 0.002/1.13 || half > all || all > 1.13*slept || 10*half > 1.13*slept {
		t.Errorf("half of the naps took %g s, all %g s, the witness has slept %g s", half, all, slept)
	}
	l.refused(t, omis.ParameterError, `pa_timer_create4("ordered",1,"bars")`)
	l.ask(t, "pa_timer_delete([%s])", timer)
	l.refused(t, omis.UnknownObject, "pa_timer_histogram([%s],0)", timer)
}

// TestIntegratorLive sums up results of a function of the witness.
func TestIntegratorLive(t *testing.T) {
	l, w := startWitness(t)
	integrator := text(l.ask(t, "pa_integrator_create()")[0])
	l.define(t, `thread_has_ended_lib_call([p_1],"rand_r") : pa_integrator_add([%s], $par1)`, integrator)
	for range 2 {
		var last, sum, squares, least, most float64
		for i, word := range w.says("library", 6) {
			n, _ := strconv.ParseFloat(word, 64)
			last, sum, squares = n, sum+n, squares+n*n
			if least, most = min(least, n), max(most, n); i == 0 {
				least = n
			}
		}
		want := text(omis.List(omis.Float(last), omis.Float(sum), omis.Float(squares), omis.Float(least), omis.Float(most)))
		wantText(t, "integrator", text(l.ask(t, "pa_integrator_read([%s],0)", integrator)[1]), "p_1 "+l.token(t, w.pid)+" 6 "+want)
		l.ask(t, "pa_integrator_reset([%s])", integrator)
	}
	l.ask(t, "pa_integrator_delete([%s])", integrator)
	l.refused(t, omis.UnknownObject, "pa_integrator_read([%s],0)", integrator)
}

// TestFilterLive passes one of the witness's numbers through a filter.
func TestFilterLive(t *testing.T) {
	l, w := startWitness(t)
	said, e := w.says("library", 6), text(l.ask(t, "user_event_create()")[0])
	d := l.define(t, "user_event_has_been_raised(%s) : print([$par1])", e)
	l.define(t, `thread_has_ended_lib_call([p_1],"rand_r") : pa_filter($par1, %s, %s)`, said[3], e)
	w.says("library", 6)
	d.await(t, 1)
	wantText(t, "what came through", strings.Join(d.print(0), " "), said[3])
}

// TestCombinationsLive makes the witness cause two events in an order that the test knows.
func TestCombinationsLive(t *testing.T) {
	l, w := startWitness(t)
	both, ordered := text(l.ask(t, "user_event_create()")[0]), text(l.ask(t, "user_event_create()")[0])
	all := text(l.ask(t, "pa_and_create(2,%s)", both)[0]) + "," + text(l.ask(t, "pa_sequence_create(2,%s)", ordered)[0])
	l.define(t, "thread_reached_addr([p_1],%#x) : pa_combination_signal([%s], 1)", w.work, all)
	l.define(t, `thread_has_ended_sys_call([p_1],"getppid") : pa_combination_signal([%s], 2)`, all)
	told := []*told{
		l.define(t, "user_event_has_been_raised(%s) : print([1])", both),
		l.define(t, "user_event_has_been_raised(%s) : print([1])", ordered),
	}
	for i, step := range []struct {
		what  string
		reset bool
		want  string // how often both have been raised
	}{
		{"system", false, "0 0"},
		{"work", false, "1 0"},
		{"system", false, "1 1"},
		{"work", true, "1 1"},
		{"system", true, "1 1"},
		{"work", false, "2 1"},
		{"system", false, "2 2"},
	} {
		if step.reset {
			l.ask(t, "pa_combination_reset([%s])", all)
		}
		w.says(step.what, 1)
		eventually(t, fmt.Sprintf("step %d, %s: %s", i, step.what, step.want), func() bool {
			return fmt.Sprint(told[0].count(), told[1].count()) == step.want
		})
	}
	l.ask(t, "pa_combination_delete([%s])", all)
	l.refused(t, omis.UnknownObject, "pa_combination_reset([%s])", all)
}

// TestIntervalsLive checks the number of intervals by the test's own clock.
func TestIntervalsLive(t *testing.T) {
	l := startLive(t)
	start := time.Now()
	d := l.define(t, "pa_interval_elapsed(20) : print([1])")
	eventually(t, "ten intervals", func() bool { return d.count() >= 10 })
	l.ask(t, "csr_disable([%s])", d.csr)
	if n, most := d.count(), int(time.Since(start)/(20*time.Millisecond)); n > most {
		t.Errorf("%d intervals of 20 ms in %v", n, time.Since(start))
	}
}
