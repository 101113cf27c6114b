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

// goroutines compiles the target whose functions block, move their stacks, recur, and are
// left without a return.
func goroutines(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "goroutines")
	args := append([]string{"build", "-o", out}, flags...)
	if msg, err := exec.Command("go", append(args, "./testdata/goroutines")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	return out
}

// enteredGo has the functions of the target begin behind their checks of the stack.
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

// truth is what the target has measured itself.
type truth struct{ calls, returns, inside, outside int64 }

func (g truth) String() string {
	return fmt.Sprintf("%d calls, %d returns, %d to %d ns", g.calls, g.returns, g.inside, g.outside)
}

// byCounter is the placement inline with the time stamp counter as its clock, whatever the
// machine's clock is: the counter runs steadily for as long as a test takes.
const byCounter = "inline by the counter"

var goPlacements = []string{"trap", kernel.Name, inline.Name, byCounter}

// goPlacement is where functions in Go are timed that are asked for with a placement.
var goPlacement = map[string]string{"trap": "trap", kernel.Name: "trap", inline.Name: inline.Name, byCounter: inline.Name}

// goScenarios are what the target does, and by which function.
var goScenarios = []struct {
	what, function string
	n              int
	within         bool // the times of all calls are known
}{
	{"sleep", "main.sleeps", 600, true},
	{"grow", "main.grows", 300, true},
	{"deep", "main.dives", 100, false},
	{"leave", "main.leaves", 400, false},
}

// In every placement an interval of a function in Go is one of the goroutine: it may end on
// another thread than it began on, and on a stack that was moved. What is measured agrees
// with what the program has measured itself.
func TestGoroutines(t *testing.T) {
	path := goroutines(t)
	if f, err := elf.Open(path); err != nil || f.Section(".gopclntab") == nil {
		t.Fatalf("%v: it is of no program in Go", err)
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

// checkGo compares what was measured of a region with what the target did.
func checkGo(t *testing.T, r *rig.Monitor, region int, what string, did truth, within bool) {
	t.Helper()
	// A thread may end intervals and begin none: Rows has the threads that began some.
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
		t.Errorf("%s: %d counted, %d timed; the program made %v", what, count, intervals, did)
	}
	if left := did.calls - did.returns; unfinished > left {
		t.Errorf("%s: %d unfinished, and only %d were left without a return", what, unfinished, left)
	}
	if low, high := 0.95*float64(did.inside), 1.05*float64(did.outside); within && (sum < low || sum > high) {
		t.Errorf("%s: %g ns in all; the program measured %v", what, sum, did)
	}
	t.Logf("%s: %d counted, %d timed, %d unfinished, %.0f ns; the program: %v", what, count, intervals, unfinished, sum, did)
}

// newGoRig is newRig for programs in Go.
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

// goTarget starts the target, with a monitor that times its functions in a placement.
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

// doGo has the target do something, and returns what it has measured.
func doGo(t *testing.T, r *rig.Monitor, what string, n int) (did truth) {
	t.Helper()
	line := r.Target.Do("%s %d", what, n)
	if _, err := fmt.Sscan(line, &did.calls, &did.returns, &did.inside, &did.outside); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return did
}

// Intervals that goroutines left open before a reset count no more afterwards, neither as
// measured nor as unfinished.
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

// Of functions in Go one interval in so many may be timed, and a histogram be kept.
func TestGoroutinesSampled(t *testing.T) {
	path := goroutines(t)
	for _, placement := range goPlacements {
		t.Run(placement, func(t *testing.T) {
			const oneIn, calls = 5, 300
			r := goTarget(t, path, placement, func(r *rig.Monitor) { r.OneIn, r.Spread = oneIn, true })
			did := doGo(t, r, "sleep", calls)
			told := r.Ask(": pa_timer_estimate([pa_t_1],2) pa_timer_histogram([pa_t_1],2)")
			row := told[1][0].Values[1].List
			begun, timed, sum := row[2].N, row[3].N, row[5].Float*1e9
			var spread uint64
			for b := told[2][0].Values[1].List[3].List; len(b) > 0; b = b[3:] {
				spread += b[2].N
			}
			// Of each thread's last few one may be timed, or none.
			if begun != calls || timed < calls/oneIn-16 || timed > calls/oneIn+16 || spread != timed {
				t.Errorf("%d began, %d were timed, %d are in buckets", begun, timed, spread)
			}
			if sum < 0.7*float64(did.inside) || sum > 1.4*float64(did.outside) {
				t.Errorf("%g ns in all are estimated; the program measured %v", sum, did)
			}
		})
	}
}

// The target goes on when the monitor that times its functions in Go is killed, and the next
// monitor measures as exactly.
func TestMonitorKilledWhileTimingGo(t *testing.T) {
	path := goroutines(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			g := rig.Start(t, path)
			enteredGo(t, g, "main.sleeps")
			what := fmt.Sprintf("%d %s %s %#x", g.ID.PID, placement, timing, g.Func["main.sleeps"])
			for _, exit := range g.Exits("main.sleeps") {
				what += fmt.Sprintf(" %#x", exit)
			}
			for n := range 3 {
				monitor := startTracer(t, what)
				g.Tell("sleep 500")
				time.Sleep(time.Duration(n) * 7 * time.Millisecond)
				monitor.kill()
				if got := g.Line(); !strings.HasPrefix(got, "500 500 ") {
					t.Errorf("the target says %q", got)
				}
			}
			r := newGoRig(t, placement, g)
			r.Region("main.sleeps", "[]")
			r.Enable()
			checkGo(t, r, 1, "sleep", doGo(t, r, "sleep", 100), true)
		})
	}
}
