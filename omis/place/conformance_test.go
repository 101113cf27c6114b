//go:build linux && amd64

package place_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// scenario describes what a target does while its functions are measured, and the measurements, which
// are the same in every placement.
type scenario struct {
	name    string
	regions []string // functions or system calls to measure
	threads string   // the threads in the requests; "" means "[]"
	flags   []string // of the compiler
	calls32 bool     // the target makes system calls by int $0x80
	oneIn   int      // number of intervals for each one that is timed; 0: all are timed
	spread  bool     // timers keep histograms
	do      func(r *rig.Monitor)
	want    []string // for each region, as rig.Summary: threads×count/intervals/unfinished; with oneIn also /all intervals
}

// commands returns a function that sends commands to the target.
func commands(lines ...string) func(*rig.Monitor) {
	return func(r *rig.Monitor) {
		for _, line := range lines {
			r.Target.Do("%s", line)
		}
	}
}

var scenarios = []scenario{
	{name: "calls", regions: []string{"work"}, do: commands("call 1000"), want: []string{"1×1000/1000/0"}},
	{name: "threads", regions: []string{"work"}, do: commands("together 6 400"), want: []string{"6×400/400/0"}},
	{name: "threads that come and go", regions: []string{"work"}, do: commands("onebyone 200 5"), want: []string{"200×5/5/0"}},
	{name: "200 threads at once", regions: []string{"work"}, do: commands("together 200 20"), want: []string{"200×20/20/0"}},
	{name: "recursion", regions: []string{"recurse", "work"}, do: commands("recurse 60", "recurse 0"), want: []string{"1×62/62/0", "1×60/60/0"}},
	{name: "longjmp", regions: []string{"jump", "catch"}, do: commands("jump 5 3"), want: []string{"1×18/0/12", "1×3/3/0"}},
	{name: "exceptions", regions: []string{"throwing", "caught"}, do: commands("throw 7 4", "throw 2 1"), want: []string{"1×35/0/32", "1×5/5/0"}},
	{name: "fork", regions: []string{"work"}, do: commands("fork 50", "call 10"), want: []string{"1×10/10/0"}},
	{name: "exec", regions: []string{"work"}, do: execAgain, want: []string{"1×10/10/0"}},
	{name: "exec at the same addresses", regions: []string{"work"}, flags: []string{"-no-pie"}, do: execAgain, want: []string{"1×10/10/0"}},
	{name: "disabled in between", regions: []string{"work"}, do: disableBetween, want: []string{"1×30/30/0"}},
	{name: "reset in between", regions: []string{"work"}, do: resetBetween, want: []string{"1×20/20/0"}},
	{name: "deleted", regions: []string{"work"}, do: deleteAll, want: []string{"1×10/10/0"}},
	{name: "one thread of several", regions: []string{"work"}, threads: "[t_1]", do: commands("together 3 20", "call 4"), want: []string{"1×4/4/0"}},
	{name: "one in ten", regions: []string{"work"}, oneIn: 10, do: commands("call 1000"), want: []string{"1×1000/100/0/1000"}},
	{name: "one in ten, threads", regions: []string{"work"}, oneIn: 10, do: commands("together 6 400"), want: []string{"6×400/40/0/400"}},
	{name: "one in two, reset in between", regions: []string{"work"}, oneIn: 2, do: resetBetween, want: []string{"1×20/10/0/20"}},
	{name: "one in two, disabled in between", regions: []string{"work"}, oneIn: 2, do: disableBetween, want: []string{"1×30/15/0/30"}},
	{name: "one in four, recursion", regions: []string{"recurse", "work"}, oneIn: 4, do: commands("recurse 59", "recurse 3", "recurse 1", "recurse 1"), want: []string{"1×68/17/0/68", "1×64/16/0/64"}},
	{name: "one in six, longjmp", regions: []string{"jump", "catch"}, oneIn: 6, do: commands("jump 5 300"), want: []string{"1×1800/0/299/1800", "1×300/50/0/300"}},
	{name: "one in eight, exceptions", regions: []string{"throwing", "caught"}, oneIn: 8, do: commands("throw 7 40"), want: []string{"1×320/0/39/320", "1×40/5/0/40"}},
	{name: "histogram", regions: []string{"work"}, spread: true, do: commands("call 1000", "together 3 100", "call 1000"), want: []string{"1×2000/2000/0 3×100/100/0"}},
	{name: "histogram, threads that come and go", regions: []string{"work"}, spread: true, do: commands("onebyone 200 5"), want: []string{"200×5/5/0"}},
	{name: "histogram, 200 threads at once", regions: []string{"work"}, spread: true, do: commands("together 200 20"), want: []string{"200×20/20/0"}},
	{name: "histogram, recursion", regions: []string{"recurse", "work"}, spread: true, do: commands("recurse 60", "recurse 0"), want: []string{"1×62/62/0", "1×60/60/0"}},
	{name: "histogram, longjmp", regions: []string{"jump", "catch"}, spread: true, do: commands("jump 5 3"), want: []string{"1×18/0/12", "1×3/3/0"}},
	{name: "histogram, exec", regions: []string{"work"}, spread: true, do: execAgain, want: []string{"1×10/10/0"}},
	{name: "histogram, disabled in between", regions: []string{"work"}, spread: true, do: disableBetween, want: []string{"1×30/30/0"}},
	{name: "histogram, reset in between", regions: []string{"work"}, spread: true, do: resetBetween, want: []string{"1×20/20/0"}},
	{name: "histogram, deleted", regions: []string{"work"}, spread: true, do: deleteAll, want: []string{"1×10/10/0"}},
	{name: "histogram, one in ten", regions: []string{"work"}, spread: true, oneIn: 10, do: commands("together 6 400"), want: []string{"6×400/40/0/400"}},
	{name: "code without a file of its own name", regions: []string{"work"}, do: unlinked, want: []string{"1×10/10/0"}},
}

func execAgain(r *rig.Monitor) {
	r.Target.Do("call 10")
	r.Target.Tell("exec")
	r.Target.Ready()
	r.Target.Do("call 10")
}

func disableBetween(r *rig.Monitor) {
	r.Target.Do("call 10")
	r.Disable()
	r.Target.Do("call 10")
	r.Enable()
	r.Target.Do("call 10")
	r.Disable()
	r.Enable()
	r.Target.Do("call 10")
}

func resetBetween(r *rig.Monitor) {
	r.Target.Do("together 3 10")
	r.Ask(": pa_counter_reset([pa_c_1]) pa_timer_reset([pa_t_1])")
	r.Target.Do("call 20")
}

func deleteAll(r *rig.Monitor) {
	r.Target.Do("call 10")
	r.Ask(": csr_delete([%s])", strings.Join(r.CSRs, ","))
	r.CSRs = nil
	r.Target.Do("call 10")
}

func unlinked(r *rig.Monitor) {
	if err := os.Remove(r.Target.Path); err != nil {
		r.T.Fatal(err)
	}
	r.Target.Do("call 10")
}

// TestConformance checks that measurements of functions do not depend on the placement.
func TestConformance(t *testing.T) {
	programs := make(map[string]string) // by flags
	for _, s := range scenarios {
		flags := strings.Join(s.flags, " ")
		if programs[flags] == "" {
			programs[flags] = rig.Scenes(t, s.flags...)
		}
		t.Run(s.name, func(t *testing.T) {
			for _, placement := range []string{"trap", kernel.Name, inline.Name} {
				t.Run(placement, func(t *testing.T) { s.run(t, placement, programs[flags]) })
			}
		})
	}
}

// TestSameNumber checks that a thread that gets the number of one that has ended is another thread. Inline, the two may
// share a row.
func TestSameNumber(t *testing.T) {
	program := rig.Scenes(t)
	same := scenario{regions: []string{"work"}, do: commands("samenumber 12 5"), want: []string{"12×5/5/0"}}
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) { same.run(t, placement, program) })
	}
}

func (s *scenario) run(t *testing.T, placement, program string) {
	own := filepath.Join(t.TempDir(), "target")
	if err := os.Link(program, own); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, placement, rig.Start(t, own))
	r.OneIn = s.oneIn
	r.Spread = s.spread
	for _, function := range s.regions {
		threads := s.threads
		if threads == "" {
			threads = "[]"
		}
		r.Region(function, threads)
	}
	r.Enable()
	r.RunsIn(placement)
	s.do(r)
	s.check(t, r)
}

// check compares the measurements with want, and checks that their times are plausible.
func (s *scenario) check(t *testing.T, r *rig.Monitor) {
	t.Helper()
	for i, want := range s.want {
		rows := r.Rows(i + 1)
		if got := rig.Summary(rows); got != want {
			t.Errorf("%s: %s, want %s", s.regions[i], got, want)
		}
		for _, w := range rows {
			if err := w.Plausible(); err != nil {
				t.Errorf("%s of %s: %v", s.regions[i], w.Thread, err)
			}
		}
	}
}
