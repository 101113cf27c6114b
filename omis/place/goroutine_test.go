//go:build linux && amd64

package place_test

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/clock"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// goroutines compiles a Go target whose functions block, grow their stacks, are recursive, and end
// without a return.
func goroutines(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "goroutines")
	args := append([]string{"build", "-o", out}, flags...)
	if msg, err := exec.Command("go", append(args, "./testdata/goroutines")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

// enteredGo moves the entries of functions in g behind their checks of the stack.
func enteredGo(t testing.TB, g *rig.Target, functions ...string) {
	t.Helper()
	for _, name := range functions {
		code := g.Code(g.Func[name], g.Size[name])
		at := 0
		for range 8 {
			inst, err := x86asm.Decode(code[at:], 64)
			if err != nil {
				t.Fatal(err)
			}
			at += inst.Len
			if inst.Op == x86asm.JBE {
				g.Func[name] += uint64(at)
				g.Size[name] -= at
				break
			}
		}
	}
}

// ownMeasurement is what the target has measured itself.
type ownMeasurement struct{ calls, returns, inside, outside int64 }

func (g ownMeasurement) String() string {
	return fmt.Sprintf("%d calls, %d returns, %d to %d ns", g.calls, g.returns, g.inside, g.outside)
}

// byCounter is the placement inline with the time stamp counter as its clock, even if the machine has
// another clock: the counter is steady enough for a test.
const byCounter = "inline by the counter"

var goPlacements = []string{"trap", kernel.Name, inline.Name, byCounter}

// goPlacement maps a placement to the placement where functions in Go are timed instead.
var goPlacement = map[string]string{"trap": "trap", kernel.Name: "trap", inline.Name: inline.Name, byCounter: inline.Name}

// goScenarios lists the commands of the target, and the function that each executes n times.
var goScenarios = []struct {
	what, function string
	n              int
	within         bool // the target knows the times of all calls
}{
	{"sleep", "main.sleeps", 600, true},
	{"grow", "main.grows", 300, true},
	{"deep", "main.dives", 100, false},
	{"leave", "main.leaves", 400, false},
}

// TestGoroutines checks in every placement that the intervals of functions in Go agree with the program's
// own measurements. An interval belongs to a goroutine: it may end on another thread, and after the
// runtime has moved the stack.
func TestGoroutines(t *testing.T) {
	path := goroutines(t)
	if f, err := elf.Open(path); err != nil || f.Section(".gopclntab") == nil {
		t.Fatalf("the target is not a Go program: %v", err)
	}
	for _, placement := range goPlacements {
		t.Run(placement, func(t *testing.T) {
			r := goTarget(t, path, placement, nil)
			for i, s := range goScenarios {
				did := doGo(t, r, s.what, s.n)
				checkGo(t, r, i+1, s.what, did, s.within)
			}
		})
	}
}

// checkGo compares the measurements of a region with the target's own.
func checkGo(t *testing.T, r *rig.Monitor, region int, what string, did ownMeasurement, within bool) {
	t.Helper()
	// Rows omits threads that only end intervals; the sums below include them.
	for _, w := range r.Rows(region) {
		if err := w.Plausible(); err != nil {
			t.Errorf("%s: %s: %v", what, w.Thread, err)
		}
	}
	reply := r.Ask(": pa_counter_sum([pa_c_%d],2) pa_timer_sum([pa_t_%d],2)", region, region)
	count := int64(reply[1][0].Values[1].List[2].N)
	timed := reply[2][0].Values[1].List
	intervals, sum, unfinished := int64(timed[2].N), timed[4].Float*1e9, int64(timed[8].N)
	if count != did.calls || intervals != did.returns {
		t.Errorf("%s: %d counted, %d timed; the program measured %v", what, count, intervals, did)
	}
	if left := did.calls - did.returns; unfinished > left {
		t.Errorf("%s: %d unfinished, but only %d calls ended without a return", what, unfinished, left)
	}
	if low, high := 0.95*float64(did.inside), 1.05*float64(did.outside); within && (sum < low || sum > high) {
		t.Errorf("%s: the sum is %g ns; the program measured %v", what, sum, did)
	}
	t.Logf("%s: %d counted, %d timed, %d unfinished, %.0f ns; the program: %v", what, count, intervals, unfinished, sum, did)
}

// newGoRig does the same as newRig, also for byCounter.
func newGoRig(t testing.TB, placement string, g *rig.Target) *rig.Monitor {
	t.Helper()
	placer := placers[placement]
	if placement == byCounter {
		placer = func(t testing.TB, n *linux.Node) program.Placer {
			return closed(t, inline.NewWith(n, func() (clock.Clock, error) { return clock.Clock{Kind: clock.Counter, Source: "tsc"}, nil }))
		}
	}
	return rig.Open(t, linux.Config{Name: "here"}, placer, g)
}

// goTarget starts the target and a monitor that times its functions in a placement.
func goTarget(t *testing.T, path, placement string, set func(*rig.Monitor)) *rig.Monitor {
	t.Helper()
	r := newGoRig(t, placement, rig.Start(t, path))
	if set != nil {
		set(r)
	}
	for _, s := range goScenarios {
		enteredGo(t, r.Target, s.function)
		r.Region(s.function, "[]")
	}
	r.Enable()
	r.RunsIn(goPlacement[placement])
	return r
}

// doGo sends the target a command and returns what the target measured.
func doGo(t *testing.T, r *rig.Monitor, what string, n int) (did ownMeasurement) {
	t.Helper()
	line := r.Target.Do("%s %d", what, n)
	if _, err := fmt.Sscan(line, &did.calls, &did.returns, &did.inside, &did.outside); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return did
}

// TestGoroutinesReset checks that intervals that goroutines began before a reset do not count afterwards,
// neither as measured nor as unfinished.
func TestGoroutinesReset(t *testing.T) {
	path := goroutines(t)
	for _, placement := range goPlacements {
		t.Run(placement, func(t *testing.T) {
			r := goTarget(t, path, placement, nil)
			doGo(t, r, "leave", 100)
			doGo(t, r, "sleep", 50)
			r.Ask(": pa_counter_reset([pa_c_1,pa_c_4]) pa_timer_reset([pa_t_1,pa_t_4])")
			checkGo(t, r, 1, "sleep", doGo(t, r, "sleep", 50), true)
			checkGo(t, r, 4, "leave", doGo(t, r, "leave", 100), false)
			checkGo(t, r, 3, "deep", doGo(t, r, "deep", 5), false)
		})
	}
}

// TestGoroutinesSampled checks a sampled timer with a histogram for functions in Go.
func TestGoroutinesSampled(t *testing.T) {
	path := goroutines(t)
	for _, placement := range goPlacements {
		t.Run(placement, func(t *testing.T) {
			const oneIn, calls = 5, 300
			r := goTarget(t, path, placement, func(r *rig.Monitor) { r.OneIn, r.Spread = oneIn, true })
			did := doGo(t, r, "sleep", calls)
			reply := r.Ask(": pa_timer_estimate([pa_t_1],2) pa_timer_histogram([pa_t_1],2)")
			row := reply[1][0].Values[1].List
			begun, timed, sum := row[2].N, row[3].N, row[5].Float*1e9
			var spread uint64
			for b := reply[2][0].Values[1].List[3].List; len(b) > 0; b = b[3:] {
				spread += b[2].N
			}
			// One of each thread's last few intervals may be timed, or none.
			if begun != calls || timed < calls/oneIn-16 || timed > calls/oneIn+16 || spread != timed {
				t.Errorf("%d began, %d were timed, %d are in buckets", begun, timed, spread)
			}
			if sum < 0.7*float64(did.inside) || sum > 1.4*float64(did.outside) {
				t.Errorf("the estimated sum is %g ns; the program measured %v", sum, did)
			}
		})
	}
}

// TestMonitorKilledWhileTimingGo checks that the target continues when the monitor that times its functions, or
// records their goroutines, is killed, and that the next monitor measures correctly.
func TestMonitorKilledWhileTimingGo(t *testing.T) {
	path := goroutines(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			g := rig.Start(t, path)
			enteredGo(t, g, "main.sleeps")
			addrs := fmt.Sprintf("%#x", g.Func["main.sleeps"])
			for _, exit := range g.Exits("main.sleeps") {
				addrs += fmt.Sprintf(" %#x", exit)
			}
			for n, mode := range []string{timing, placing, placing} {
				monitor := startTracer(t, fmt.Sprintf("%d %s %s %s", g.ID.PID, placement, mode, addrs))
				g.Tell("sleep 500")
				time.Sleep(time.Duration(n) * 7 * time.Millisecond)
				monitor.kill()
				if got := g.Line(); !strings.HasPrefix(got, "500 500 ") {
					t.Errorf("the target answered %q", got)
				}
			}
			r := newGoRig(t, placement, g)
			r.Region("main.sleeps", "[]")
			r.Enable()
			checkGo(t, r, 1, "sleep", doGo(t, r, "sleep", 100), true)
		})
	}
}
