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
	"mirador/omis/place/kernel"
)

// gains is what the program gains.c itself counts in its function: just inside of it, and outside.
type gains struct {
	faults, waits, displaced [2]int64
}

func gain(t *testing.T, r *rig.Monitor, command string) (g gains) {
	t.Helper()
	_, err := fmt.Sscanf(r.Target.Do("%s", command), "done %d %d %d %d %d %d",
		&g.faults[0], &g.faults[1], &g.waits[0], &g.waits[1], &g.displaced[0], &g.displaced[1])
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// span measures a function by the timer pa_t_1, from its entry to its exits.
func span(r *rig.Monitor, function string) {
	r.T.Helper()
	r.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_1])", r.Target.Func[function])
	for _, exit := range r.Target.Exits(function) {
		r.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1])", exit)
	}
}

// total is the sum of the rows of a timer, in units of its clock.
type total struct{ threads, intervals, last, sum, least, most, unfinished int64 }

func exact(r *rig.Monitor, timer int) (s total) {
	r.T.Helper()
	list := r.Ask(": pa_timer_exact([pa_t_%d],2)", timer)[1][0].Values[1].List
	if len(list) == 0 {
		return s
	}
	for i, to := range map[int]*int64{2: &s.intervals, 3: &s.last, 5: &s.sum, 8: &s.least, 9: &s.most, 10: &s.unfinished} {
		*to, _ = list[i].Int64()
	}
	s.threads = int64(len(r.Ask(": pa_timer_exact([pa_t_%d],0)", timer)[1][0].Values[1].List) / 11)
	return s
}

func compileGains(t *testing.T) string {
	return subject.Compile(t, "gains", "-O2", "-pthread", "testdata/gains.c")
}

// TestCallsInRegion checks, in all placements, that a timer over a counter measures how many system calls
// each execution of a function makes.
func TestCallsInRegion(t *testing.T) {
	program := compileGains(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(`: pa_counter_create()`)
			r.Ask(`: pa_timer_over_counter([pa_c_1],1,"histogram")`)
			r.Define(`thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`)
			span(r, "gain")
			r.Enable()
			r.RunsIn(placement)
			gain(t, r, "gain 3 20 7 0 0")
			if got, want := exact(r, 1), (total{3, 60, 9, 540, 9, 9, 0}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			gain(t, r, "gain 1 1 40 2 0")
			if got, want := exact(r, 1), (total{4, 61, 46, 586, 9, 46, 0}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			buckets := r.Ask(": pa_timer_histogram([pa_t_1],2)")[1][0].Values[1].List[3].List
			if len(buckets) != 6 || buckets[2].N != 60 || buckets[5].N != 1 {
				t.Errorf("the buckets are %v", buckets)
			}
		})
	}
}

// TestNoCallsInRegion checks, in all placements and for several beginnings of functions, that no system call counts
// that the kernel or the monitor makes a thread do: no uprobe on a five-byte nop (since Linux 6.18 a system call), no
// injected call, no restart.
func TestNoCallsInRegion(t *testing.T) {
	for _, flags := range []string{"", "-fcf-protection", "-pg -mfentry -mnop-mcount -fno-pie"} {
		// Linked with -pg, the program would have a timer, whose signal handler makes system calls.
		object := subject.Compile(t, "gains.o", append([]string{"-c", "-O2", "testdata/gains.c"}, strings.Fields(flags)...)...)
		program := subject.Compile(t, "gains", object, "-pthread", "-no-pie")
		for _, placement := range []string{"trap", kernel.Name} {
			t.Run(flags+"/"+placement, func(t *testing.T) {
				g := rig.Start(t, program)
				awaitRead(t, g)
				r := newRig(t, placement, g)
				r.Ask(`: pa_counter_create() pa_counter_create()`)
				r.Ask(`: pa_timer_over_counter([pa_c_1],1,"sums") pa_timer_over_counter([pa_c_2],1,"sums")`)
				r.Define(`thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`)
				r.Define(`thread_has_ended_sys_call([],"") : pa_counter_add([pa_c_2],1)`)
				for _, region := range []string{"quiet", "gaining"} { // the second one calls the first
					r.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_1,pa_t_2])", r.Target.Func[region])
					for _, exit := range r.Target.Exits(region) {
						r.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1,pa_t_2])", exit)
					}
				}
				r.Enable()
				r.RunsIn(placement)
				for _, object := range r.Ask(": pa_counter_read([pa_c_1,pa_c_2])")[1:] {
					for _, counted := range object {
						// The target waits in a call that began before.
						if n := counted.Values[1].List; len(n) > 0 && n[2].N != 0 {
							t.Errorf("%v has counted before the target has done anything", counted)
						}
					}
				}
				r.Target.Do("quiet 3 200")
				for timer := range 2 {
					if got, want := exact(r, timer+1), (total{3, 603, 0, 0, 0, 0, 0}); got != want {
						t.Errorf("timer %d: %+v, want %+v", timer+1, got, want)
					}
				}
			})
		}
	}
}

// awaitRead waits until the target waits for a command.
func awaitRead(t *testing.T, g *rig.Target) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		in, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", g.ID.PID))
		if err == nil && strings.HasPrefix(string(in), "0 ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the target does not wait: %s, %v", in, err)
		}
	}
}

// TestLeftRegion checks, in all placements, that executions of a function that a longjmp leaves count as
// unfinished, and that the values of the others are right.
func TestLeftRegion(t *testing.T) {
	program := compileGains(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(`: pa_counter_create()`)
			r.Ask(`: pa_timer_over_counter([pa_c_1],1,"sums")`)
			r.Define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_1],1)`)
			span(r, "half")
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("jump 21")
			if got, want := exact(r, 1), (total{1, 11, 2, 22, 2, 2, 10}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestTakenAtInstant checks, in all placements, that pa_timer_take measures what a counter has of the thread.
func TestTakenAtInstant(t *testing.T) {
	program := compileGains(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(`: pa_counter_create()`)
			r.Ask(`: pa_timer_over_counter([pa_c_1],1,"sums")`)
			r.Define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_1],1)`)
			r.Define("thread_reached_addr([],%#x) : pa_timer_take([pa_t_1])", r.Target.Func["gain"])
			r.Enable()
			r.RunsIn(placement)
			gain(t, r, "gain 2 4 5 0 0") // each thread: 0, 5, 10, 15
			if got, want := exact(r, 1), (total{2, 8, 15, 60, 0, 15, 0}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestLevelsAtInstants checks that pa_timer_take_level reads the levels of the process where a function begins and
// ends, as the program itself sees them.
func TestLevelsAtInstants(t *testing.T) {
	r := newRig(t, "trap", rig.Start(t, compileGains(t)))
	r.Ask(": pa_timer_create() pa_timer_create() pa_timer_create() pa_timer_create()")
	r.Define(`thread_reached_addr([],%#x) : pa_timer_take_level([pa_t_1],"heap") pa_timer_take_level([pa_t_3],"threads") pa_timer_take_level([pa_t_4],"resident")`, r.Target.Func["grows"])
	for _, exit := range r.Target.Exits("grows") {
		r.Define(`thread_reached_addr([],%#x) : pa_timer_take_level([pa_t_2],"heap")`, exit)
	}
	r.Enable()
	r.RunsIn("trap")
	for i, size := range []int{100, 50_000, 3_000_000, 10} { // the last one shrinks the heap
		var begin, end int64
		if _, err := fmt.Sscanf(r.Target.Do("grow %d", size), "done %d %d", &begin, &end); err != nil {
			t.Fatal(err)
		}
		if first, last := exact(r, 1), exact(r, 2); first.last != begin || last.last != end || first.intervals != int64(i+1) {
			t.Errorf("%d bytes: %+v and %+v, want %d and %d", size, first, last, begin, end)
		}
	}
	if got := exact(r, 3); got.least != 1 || got.most != 1 || got.intervals != 4 {
		t.Errorf("threads: %+v", got)
	}
	if got := exact(r, 4); got.least < 100_000 || got.most > 1<<30 {
		t.Errorf("resident: %+v", got)
	}
	request := fmt.Sprintf(`thread_reached_addr([],%#x) : pa_timer_take_level([pa_t_1],"steps")`, r.Target.Func["grows"])
	token := r.Ask("%s", request)[0][0].Values[0].Token()
	r.Ask(": csr_enable([%s])", token)
	r.Target.Do("grow 1")
	if got := exact(r, 1); got.intervals != 5 {
		t.Errorf("a level that does not exist was measured: %+v", got)
	}
}

// TestKernelCountsInRegion checks that timers with the clocks of the kernel measure what the program itself
// asks the kernel for.
func TestKernelCountsInRegion(t *testing.T) {
	program := compileGains(t)
	for clock, of := range map[string]func(gains) [2]int64{
		"minor-faults":         func(g gains) [2]int64 { return g.faults },
		"page-faults":          func(g gains) [2]int64 { return g.faults },
		"perf:page-faults":     func(g gains) [2]int64 { return g.faults },
		"voluntary-switches":   func(g gains) [2]int64 { return g.waits },
		"involuntary-switches": func(g gains) [2]int64 { return g.displaced },
	} {
		t.Run(clock, func(t *testing.T) {
			r := newRig(t, kernel.Name, rig.Start(t, program))
			r.Ask(`: pa_timer_create2(%q)`, clock)
			span(r, "gain")
			r.Enable()
			place := kernel.Name
			if strings.HasPrefix(clock, "perf:") {
				place = "trap"
			}
			r.RunsIn(place)
			want := of(gain(t, r, "gain 3 20 0 4 6"))
			got := exact(r, 1)
			if got.intervals != 60 || got.sum < want[0] || got.sum > want[1] {
				t.Errorf("%+v, want a sum from %d to %d", got, want[0], want[1])
			}
			if clock != "involuntary-switches" && want[0] == 0 {
				t.Error("the program has not gained anything")
			}
			t.Logf("%+v, %v", got, want)
		})
	}
}

// TestBytesInRegion checks that timers with the clocks of input and output measure the bytes that the function
// writes, in the kernel, and by trap beside a clock that only the monitor reads.
func TestBytesInRegion(t *testing.T) {
	program := compileGains(t)
	for placement, beside := range map[string]string{kernel.Name: "ordered", "trap": "perf:page-faults"} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, kernel.Name, rig.Start(t, program))
			r.Ask(`: pa_timer_create2("write-bytes") pa_timer_create2("read-bytes") pa_timer_create2(%q)`, beside)
			const all = "([pa_t_1]) pa_timer_%s([pa_t_2]) pa_timer_%[2]s([pa_t_3])"
			r.Define("thread_reached_addr([],%#x) : pa_timer_start"+all, r.Target.Func["gain"], "start")
			for _, exit := range r.Target.Exits("gain") {
				r.Define("thread_reached_addr([],%#x) : pa_timer_stop"+all, exit, "stop")
			}
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("write 2 5 3")
			const bytes = 100 + 101 + 102
			if got, want := exact(r, 1), (total{2, 10, bytes, 10 * bytes, bytes, bytes, 0}); got != want {
				t.Errorf("written: %+v, want %+v", got, want)
			}
			if got, want := exact(r, 2), (total{2, 10, 0, 0, 0, 0, 0}); got != want {
				t.Errorf("read: %+v, want %+v", got, want)
			}
		})
	}
}

// TestQueueInRegion checks that a timer with the clock queued measures how long threads wait for a processor.
func TestQueueInRegion(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, subject.Compile(t, "usage", "-O2", "-pthread", "testdata/usage.c")))
	r.RegionBy("queued", "work", "[]")
	r.Enable()
	r.RunsIn(kernel.Name)
	begin := time.Now()
	r.Target.Do("work 8 10 20000 0")
	took := time.Since(begin)
	// Eight threads share the processors, so each waits in the queue for most of the time.
	got := exact(r, 1)
	if queued := time.Duration(got.sum); got.intervals != 80 || queued > 8*took || runtime.NumCPU() < 5 && queued < took/4 {
		t.Errorf("%d intervals, %v in the queue, of at most %v", got.intervals, queued, 8*took)
	}
}

// TestNoKernelCountsByTrap checks that the monitor refuses the clocks of the kernel, which a held thread changes,
// with the reason.
func TestNoKernelCountsByTrap(t *testing.T) {
	r := newRig(t, "trap", rig.Start(t, compileGains(t)))
	r.Ask(`: pa_timer_create2("voluntary-switches")`)
	span(r, "gain")
	reply, err := r.Tool.Request(t.Context(), ": csr_enable(["+strings.Join(r.CSRs, ",")+"])", nil, 0)
	if err != nil || reply.Err() == nil || !strings.Contains(reply.Err().Error(), "to hold the thread changes it") {
		t.Errorf("%v, %v", reply, err)
	}
}

// TestWaitsInRegion checks that a timer over a counter of waits measures the waits of the program, not those in
// which the monitor holds its threads. In the second case the monitor reads what programs in the kernel count.
func TestWaitsInRegion(t *testing.T) {
	program := compileGains(t)
	for name, how := range map[string]struct{ where, also string }{
		"kernel": {kernel.Name, ""},
		"trap":   {"trap", " pa_integrator_add([pa_i_1],1.0)"}, // a program has no such step
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kernel.Name, rig.Start(t, program))
			r.Ask(`: pa_counter_create() pa_integrator_create()`)
			r.Ask(`: pa_timer_over_counter([pa_c_1],1,"sums")`)
			r.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_1])%s", r.Target.Func["gain"], how.also)
			for _, exit := range r.Target.Exits("gain") {
				r.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1])", exit)
			}
			r.Define(`thread_has_blocked([]) : pa_counter_add([pa_c_1],1)`)
			r.Enable()
			for i, csr := range r.CSRs {
				want := how.where
				if i == len(r.CSRs)-1 {
					want = kernel.Name
				}
				if x, err := r.Tool.State(omis.Token(csr)); err != nil || x.Placement.Name != want {
					t.Errorf("%s runs in %v, want %s; %v", csr, x.Placement, want, err)
				}
			}
			own := gain(t, r, "gain 3 10 0 5 0")
			got := exact(r, 1)
			// Each execution naps five times; the kernel may add waits, such as for a lock of the memory. A hold
			// would add one for each execution.
			if most := own.waits[0] + got.intervals/2; got.intervals != 30 || got.sum < 150 || got.sum > most {
				t.Errorf("%+v, want 30 intervals with 150 to %d waits", got, most)
			}
		})
	}
}

// TestWaitsOfOtherThreads checks that a timer of a group measures the waits of given threads whenever another thread
// executes a function, and all of them with [].
func TestWaitsOfOtherThreads(t *testing.T) {
	program := subject.Compile(t, "waiters", "-O2", "-pthread", "testdata/waiters.c")
	for name, c := range map[string]struct {
		among   string
		workers []int // that are measured
	}{"named": {"[t_2,t_3]", []int{0, 1}}, "all": {"[]", []int{0, 1, 2}}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kernel.Name, rig.Start(t, program))
			r.Ask(": thread_get_info([],1)") // the main thread is t_1
			r.Ask(": pa_counter_create()")
			r.Ask(`: pa_timer_over_counter2([pa_c_1],1,"sums",%s)`, c.among)
			span(r, "c1")
			r.Define("thread_has_blocked(%s) : pa_counter_add([pa_c_1],1)", c.among)
			r.Enable()
			var sums, most [3]int64
			rounds := []struct{ worker, naps int }{{0, 5}, {1, 7}, {2, 9}, {1, 0}, {0, 2}}
			for _, round := range rounds {
				var own [3]int64
				if _, err := fmt.Sscanf(r.Target.Do("c1 %d %d", round.worker, round.naps), "done %d %d %d", &own[0], &own[1], &own[2]); err != nil {
					t.Fatal(err)
				}
				if round.naps > 0 && own[round.worker] != int64(round.naps)+1 {
					t.Errorf("a worker naps %d times, and waited %d times", round.naps, own[round.worker])
				}
				for i, n := range own {
					sums[i], most[i] = sums[i]+n, max(most[i], n)
				}
				r.Target.Do("nap %d 3", round.worker) // outside of the function
			}
			got := make(map[omis.Token][3]int64)
			for l := r.Ask(": pa_timer_exact([pa_t_1],0)")[1][0].Values[1].List; len(l) > 0; l = l[11:] {
				got[l[1].Token()] = [3]int64{int64(l[2].N), int64(l[5].N), int64(l[9].N)}
			}
			for _, i := range c.workers {
				if worker := omis.Token(fmt.Sprint("t_", i+2)); got[worker] != [3]int64{int64(len(rounds)), sums[i], most[i]} {
					t.Errorf("%s has %v, want %d executions, %d waits in all and at most %d", worker, got[worker], len(rounds), sums[i], most[i])
				}
			}
		})
	}
}

// TestCountsOfOtherThreads checks that timers of a group measure what the kernel counts for other threads than the one
// that executes a function: the bytes that they write, and their page faults, which the program reads by getrusage.
func TestCountsOfOtherThreads(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, subject.Compile(t, "waiters", "-O2", "-pthread", "testdata/waiters.c")))
	r.Ask(": thread_get_info([],1)") // the main thread is t_1
	for _, clock := range []string{"write-bytes", "minor-faults", "page-faults", "perf:page-faults"} {
		r.Ask(`: pa_timer_create5(%q,1,"sums",[t_2,t_3])`, clock)
	}
	const all = "([pa_t_1]) pa_timer_%s([pa_t_2]) pa_timer_%[2]s([pa_t_3]) pa_timer_%[2]s([pa_t_4])"
	r.Define("thread_reached_addr([],%#x) : pa_timer_start"+all, r.Target.Func["c2"], "start")
	for _, exit := range r.Target.Exits("c2") {
		r.Define("thread_reached_addr([],%#x) : pa_timer_stop"+all, exit, "stop")
	}
	r.Enable()
	var faults, bytes [3]int64
	rounds := []struct{ worker, pages int }{{0, 50}, {1, 70}, {2, 90}, {0, 10}, {1, 0}}
	for _, round := range rounds {
		var own int64
		if _, err := fmt.Sscanf(r.Target.Do("c2 %d %d", round.worker, round.pages), "done %d", &own); err != nil || own < int64(round.pages) {
			t.Fatalf("%d page faults, %v", own, err)
		}
		faults[round.worker] += own
		bytes[round.worker] += int64(round.pages)
		r.Target.Do("touch %d 30", round.worker) // outside of the function
	}
	for timer, want := range map[int][3]int64{1: bytes, 2: faults, 3: faults, 4: faults} {
		got := make(map[omis.Token][2]int64)
		for l := r.Ask(": pa_timer_exact([pa_t_%d],0)", timer)[1][0].Values[1].List; len(l) > 0; l = l[11:] {
			got[l[1].Token()] = [2]int64{int64(l[2].N), int64(l[5].N)}
		}
		for i, n := range want[:2] {
			const around = 5 // page faults when the worker wakes up
			g := got[omis.Token(fmt.Sprint("t_", i+2))]
			if g[0] != int64(len(rounds)) || g[1] < n || g[1] > n+around || timer == 1 && g[1] != n {
				t.Errorf("timer %d, worker %d: %v, want %d executions with %d in all", timer, i, g, len(rounds), n)
			}
		}
		if g := got["t_4"]; g != [2]int64{} {
			t.Errorf("timer %d: %v of a thread that was not named", timer, g)
		}
	}
}
