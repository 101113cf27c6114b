//go:build linux && amd64

package place_test

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/rig"
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

// goPlacement is where functions in Go are timed that are asked for with a placement.
var goPlacement = map[string]string{"trap": "trap", kernel.Name: "trap", inline.Name: "trap"}

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
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, path))
			for _, s := range goScenarios {
				enteredGo(t, r.Target, s.function)
				r.Region(s.function, "[]")
			}
			r.Enable()
			r.RunsIn(goPlacement[placement])
			for i, s := range goScenarios {
				var did truth
				line := r.Target.Do("%s %d", s.what, s.n)
				if _, err := fmt.Sscan(line, &did.calls, &did.returns, &did.inside, &did.outside); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
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
