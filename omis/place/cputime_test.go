//go:build linux && amd64

package place_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// usage describes what the threads of a target do in a function.
type usage struct {
	name, function, command string
	intervals               int64 // executions of the function for each command
	rounds                  int   // number of commands
}

var usages = []usage{
	{"spins", "work", "work 1 1 3000 0", 1, 12},
	{"rests", "work", "work 1 1 0 10000", 1, 12},
	{"rests for long, and spins", "work", "work 1 1 2000 200000", 1, 4},
	{"goes from processor to processor", "wander", "wander 1 20 100", 1, 12},
	{"hardly anything", "work", "work 1 1000 0 0", 1000, 1},
	{"threads that displace each other", "work", "work 8 20 1500 100", 160, 1},
	{"threads that wander", "wander", "wander 4 100 50", 4, 1},
}

// slack is the tolerance by which an interval may be shorter than the function measures itself, or
// longer than its caller measures: the subtracted bias is not exact, and the clocks may differ by a
// ten thousandth of the elapsed time.
const slack = 40 * time.Microsecond

// TestCPUTime checks, in all placements and under any other load, that the CPU time of a region lies
// between the times that the threads themselves measure inside of the region and around it.
func TestCPUTime(t *testing.T) {
	program := subject.Compile(t, "usage", "-O2", "-pthread", "testdata/usage.c")
	for _, u := range usages {
		t.Run(u.name, func(t *testing.T) {
			for _, placement := range []string{"trap", kernel.Name} {
				t.Run(placement, func(t *testing.T) { u.run(t, placement, program) })
			}
		})
	}
}

func (u *usage) run(t *testing.T, placement, program string) {
	r := newRig(t, placement, rig.Start(t, program))
	r.RegionBy("cpu", u.function, "[]")
	r.Enable()
	r.RunsIn(placement)
	before := stolen(t)
	var all []round
	var n int64
	var earlier time.Duration // measured in earlier rounds
	for range u.rounds {
		var w round
		if _, err := fmt.Sscanf(r.Target.Do("%s", u.command), "done %d %d", &w.inside, &w.outside); err != nil {
			t.Fatal(err)
		}
		n, w.measured = measured(r)
		w.measured, earlier = w.measured-earlier, w.measured
		all = append(all, w)
	}
	if n != u.intervals*int64(u.rounds) {
		t.Errorf("%d intervals, want %d in each of %d rounds", n, u.intervals, u.rounds)
	}
	checkUsage(t, all, time.Duration(u.intervals)*slack, stolen(t)-before+time.Duration(runtime.NumCPU())*tick)
}

// TestCPUTimeBetweenTicks checks that equal intervals that are much shorter than a tick have similar CPU
// times, although the kernel updates the CPU time of a running thread only at ticks. Then the mean
// square of the intervals is not many times the square of their mean, unless the host of this virtual
// machine took the processor often; so one good round suffices.
func TestCPUTimeBetweenTicks(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, subject.Compile(t, "usage", "-O2", "-pthread", "testdata/usage.c")))
	r.RegionBy("cpu", "even", "[]")
	r.Enable()
	const n, enough, rounds = 400, 3, 20
	var ratios []float64
	for range rounds {
		r.Ask(": pa_timer_reset([pa_t_1])")
		r.Target.Do("even %d", n)
		var sum, squares, count float64
		for _, w := range r.Rows(1) {
			sum, squares, count = sum+w.Sum, squares+w.Squares, count+float64(w.Intervals)
		}
		ratios = append(ratios, count*squares/(sum*sum))
		if ratios[len(ratios)-1] < enough {
			return
		}
	}
	t.Errorf("in all rounds the mean square is too many times the square of the mean: %.1f", ratios)
}

// TestCPUTimeInTurn checks that no CPU time is missing although other processors change the kernel's data
// from which it is read.
func TestCPUTimeInTurn(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, subject.Compile(t, "usage", "-O2", "-pthread", "testdata/usage.c")))
	r.RegionBy("cpu", "work", "[]")
	r.Enable()
	const threads, each = 32, 10_000
	r.Target.Do("in turn %d %d", threads, each)
	rows := r.Rows(1)
	if len(rows) != threads {
		t.Errorf("%d threads, want %d", len(rows), threads)
	}
	for _, w := range rows {
		if w.Intervals != each || w.Unfinished != 0 {
			t.Errorf("%d intervals, and %d with an unknown time; want %d", w.Intervals, w.Unfinished, each)
		}
	}
}

// TestSampledCPUTime checks that a sampled timer of CPU time counts all intervals and times one in four.
func TestSampledCPUTime(t *testing.T) {
	program := subject.Compile(t, "usage", "-O2", "-pthread", "testdata/usage.c")
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(`: pa_timer_create3("cpu",4)`)
			r.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_1])", r.Target.Func["even"])
			for _, exit := range r.Target.Exits("even") {
				r.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1])", exit)
			}
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("even 40")
			row := r.Ask(": pa_timer_estimate([pa_t_1],2)")[1][0].Values[1].List
			begun, _ := row[2].Int64()
			timed, _ := row[3].Int64()
			if begun != 40 || timed != 10 {
				t.Errorf("%d intervals, %d of them timed; want 40, 10", begun, timed)
			}
		})
	}
}

// round is the CPU time of the intervals of one command, as three clocks measured it.
type round struct{ inside, measured, outside time.Duration }

// checkUsage checks that the measured time lies between the times inside of a function and around it: in
// a third of the rounds, and for the sum of all rounds. If the host of this virtual machine takes the
// processor, the kernel subtracts that time only at the next tick, so a single interval may be wrong by
// the stolen time.
func checkUsage(t *testing.T, all []round, slack, stolen time.Duration) {
	t.Helper()
	var sum round
	good := 0
	for _, w := range all {
		if w.measured > w.inside-slack && w.measured < w.outside+slack {
			good++
		}
		sum.inside, sum.measured, sum.outside = sum.inside+w.inside, sum.measured+w.measured, sum.outside+w.outside
	}
	t.Logf("%d of %d; %+v, stolen %v", good, len(all), sum, stolen)
	if len(all) > 1 && good < (len(all)+2)/3 {
		t.Errorf("only %d of %d times lie between inside and outside: %+v", good, len(all), all)
	}
	slack *= time.Duration(len(all))
	if sum.measured < sum.inside-slack-stolen || sum.measured > sum.outside+slack+stolen {
		t.Errorf("the sum of all times does not lie between inside and outside, although the host took only %v: %+v", stolen, sum)
	}
}

// measured returns the number of intervals of the first region, and their sum.
func measured(r *rig.Monitor) (n int64, sum time.Duration) {
	for _, w := range r.Rows(1) {
		n += w.Intervals
		sum += time.Duration(w.Sum * 1e9)
	}
	return n, sum
}

// tick is the unit of times in /proc/stat (USER_HZ).
const tick = 10 * time.Millisecond

// stolen returns the processor time that the host of this virtual machine has taken so far.
func stolen(t *testing.T) time.Duration {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var v [8]int64
	if _, err := fmt.Sscan(string(b), &name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
		t.Fatal(err)
	}
	return time.Duration(v[7]) * tick
}

// TestNoCPUTimeInline checks that the placement inline refuses timers of CPU time, with the reason.
func TestNoCPUTimeInline(t *testing.T) {
	r := newRig(t, inline.Name, rig.Start(t, rig.Scenes(t)))
	r.RegionBy("cpu", "work", "[]")
	r.Enable()
	x, err := r.Tool.State(omis.Token(r.CSRs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if x.Placement.Name != "trap" || !strings.Contains(x.Placement.Why, "inline: code in a program has no clock of the thread's CPU time") {
		t.Errorf("the placement is %v", x.Placement)
	}
	r.Target.Do("call 5")
	if n, _ := measured(r); n != 5 {
		t.Errorf("%d intervals, want 5", n)
	}
}

// TestCPUTimeOfCalls checks that a system call that waits takes almost no CPU time.
func TestCPUTimeOfCalls(t *testing.T) {
	program := rig.Caller(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.CallBy("cpu", "clock_nanosleep", "[]")
			r.Enable()
			r.RunsIn(placement)
			before := stolen(t)
			r.Target.Do("nap 300")
			n, sum := measured(r)
			if most := 50*time.Millisecond + stolen(t) - before + time.Duration(runtime.NumCPU())*tick; n != 1 || sum > most {
				t.Errorf("%d intervals, %v; want 1, of at most %v", n, sum, most)
			}
		})
	}
}

// TestNoCPUTimeOfScheduling checks that the placement kernel refuses timers of CPU time at scheduling
// events, where its programs cannot read the right time.
func TestNoCPUTimeOfScheduling(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Scenes(t)))
	r.Ask(`: pa_timer_create2("cpu")`)
	r.Define("thread_has_been_scheduled([]) : pa_timer_start([pa_t_1])")
	r.Enable()
	x, err := r.Tool.State(omis.Token(r.CSRs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if want := "kernel: where a thread gets or loses its processor"; x.Placement.Name != "trap" || !strings.Contains(x.Placement.Why, want) {
		t.Errorf("the placement is %v", x.Placement)
	}
}
