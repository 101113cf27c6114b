//go:build linux && amd64

package kernel_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/place/kernel"
)

func buildCaller(t testing.TB) string {
	return subject.Compile(t, "caller", "-O1", "testdata/caller.c")
}

// call counts and times a system call, for some threads or all of them ("[]").
func (r *rig) call(name, threads string) {
	r.t.Helper()
	r.callBy("ordered", name, threads)
}

// callBy does so by a clock.
func (r *rig) callBy(clock, name, threads string) {
	r.t.Helper()
	r.regions = append(r.regions, name)
	i := len(r.regions)
	r.ask(`: pa_counter_create() pa_timer_create2("%s")`, clock)
	r.define("thread_has_started_sys_call(%s,%q) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%d])", threads, name, i, i)
	r.define("thread_has_ended_sys_call(%s,%q) : pa_timer_stop([pa_t_%d])", threads, name, i)
}

// stopAndGo has the target stopped and going again some times while it does something.
func stopAndGo(line string) func(*rig) {
	return func(r *rig) {
		r.g.Tell("%s", line)
		for range 3 {
			time.Sleep(50 * time.Millisecond)
			r.g.Cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(20 * time.Millisecond)
			r.g.Cmd.Process.Signal(syscall.SIGCONT)
		}
		r.g.Line()
	}
}

var callScenarios = []scenario{
	{name: "calls", regions: []string{"getppid", "getsid"}, do: commands("call 1000"), want: []string{"1×1000/1000/0", ""}},
	{name: "threads", regions: []string{"getppid"}, do: commands("together 6 400"), want: []string{"6×400/400/0"}},
	{name: "threads that come and go", regions: []string{"getppid"}, do: commands("onebyone 100 5"), want: []string{"100×5/5/0"}},
	{name: "one thread of several", regions: []string{"getppid"}, threads: "[t_1]", do: commands("together 3 20", "call 4"), want: []string{"1×4/4/0"}},
	{name: "fork", regions: []string{"getppid", "clone"}, do: commands("fork 50", "call 10"), want: []string{"1×10/10/0", "1×1/1/0"}},
	{name: "new threads", regions: []string{"clone3"}, do: commands("together 5 1"), want: []string{"1×5/5/0"}},
	{name: "exec", regions: []string{"getppid"}, do: execAgain, want: []string{"1×20/20/0"}},
	{name: "the call of exec", regions: []string{"execve"}, do: execAgain, want: []string{"1×1/1/0"}},
	{name: "disabled in between", regions: []string{"getppid"}, do: disableBetween, want: []string{"1×30/30/0"}},
	{name: "reset in between", regions: []string{"getppid"}, do: resetBetweenCalls, want: []string{"1×20/20/0"}},
	{name: "deleted", regions: []string{"getppid"}, do: deleteAll, want: []string{"1×10/10/0"}},
	{name: "made again after handlers", regions: []string{"readv", "getppid"}, do: commands("interrupted 7"), want: []string{"1×1/1/0", "1×7/7/0"}},
	{name: "failed since handlers ran", regions: []string{"readv"}, do: commands("failing 5"), want: []string{"1×5/5/0"}},
	{name: "left by handlers", regions: []string{"readv"}, do: commands("jumping 4"), want: []string{"1×4/0/0"}},
	{name: "made again after stops", regions: []string{"readv", "clock_nanosleep"}, do: stopAndGo("late 300"), want: []string{"1×1/1/0", "1×1/1/0"}},
	{name: "a nap through stops", regions: []string{"clock_nanosleep", "restart_syscall"}, do: stopAndGo("nap 300"), want: []string{"1×1/1/0", ""}},
	{name: "of 32-bit code", regions: []string{"writev", "getpid"}, do: commands("another 10"), want: []string{"", ""}},
}

func resetBetweenCalls(r *rig) {
	r.g.do("together 3 10")
	r.ask(": pa_counter_reset([pa_c_1]) pa_timer_reset([pa_t_1])")
	r.g.do("call 20")
}

// What a request finds out about system calls does not depend on where it is executed.
func TestCallConformance(t *testing.T) {
	program := buildCaller(t)
	for _, s := range callScenarios {
		t.Run(s.name, func(t *testing.T) {
			for _, placement := range []string{"trap", kernel.Name} {
				t.Run(placement, func(t *testing.T) { s.runCalls(t, placement, program) })
			}
		})
	}
}

func (s *scenario) runCalls(t *testing.T, placement, program string) {
	r := newRig(t, placement, start(t, program))
	for _, name := range s.regions {
		threads := s.threads
		if threads == "" {
			threads = "[]"
		}
		r.call(name, threads)
	}
	r.enable()
	if got := r.where(); got != placement {
		t.Fatalf("the requests run in %s", got)
	}
	s.do(r)
	s.check(t, r)
}

// straceCounts are the system calls that strace counts while the program does some
// lines and ends.
func straceCounts(t *testing.T, program string, lines ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("strace", "-f", "-c", "-U", "calls,name", program)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	counts := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			counts[f[1]] = f[0]
		}
	}
	return counts
}

func TestCallsAgreeWithStrace(t *testing.T) {
	program := buildCaller(t)
	lines := []string{"call 30", "together 4 100", "onebyone 7 3", "fork 5", "nap 1", "late 5"}
	want := straceCounts(t, program, lines...)
	r := newRig(t, kernel.Name, start(t, program))
	names := []string{"getppid", "clock_nanosleep", "readv", "clone3", "wait4", "madvise"}
	for _, name := range names {
		r.call(name, "[]")
	}
	r.enable()
	for _, line := range lines {
		r.g.do("%s", line)
	}
	for i, name := range names {
		var sum, ended int64
		for _, w := range r.rows(i + 1) {
			sum, ended = sum+w.count, ended+w.intervals
		}
		if name == "getppid" {
			sum, ended = sum+5, ended+5 // those of the child, which strace follows
		}
		if fmt.Sprint(sum) != want[name] || ended != sum {
			t.Errorf("%s: %d started, %d ended, strace counts %q", name, sum, ended, want[name])
		}
	}
}

// All system calls are those by name, together.
func TestAllCalls(t *testing.T) {
	r := newRig(t, kernel.Name, start(t, buildCaller(t)))
	for _, name := range []string{"", "getppid", "read", "write", "clone3"} {
		r.call(name, "[]")
	}
	r.enable()
	r.g.do("call 1000")
	r.g.do("call 1")
	// The read of the first line had begun before; that of the next one waits.
	for region, want := range []string{"1×1005/1004/0", "1×1001/1001/0", "1×2/1/0", "1×2/2/0", ""} {
		got := summary(r.rows(region + 1))
		for late := time.Now().Add(30 * time.Second); got != want && time.Now().Before(late); got = summary(r.rows(region + 1)) {
			time.Sleep(time.Millisecond) // it has answered, but is not waiting yet
		}
		if got != want {
			t.Errorf("%q: %s, want %s", r.regions[region], got, want)
		}
	}
}

// A request that the monitor has to execute and one that it has not are both right.
func TestCallsBesideTheMonitor(t *testing.T) {
	r := newRig(t, kernel.Name, start(t, buildCaller(t)))
	r.call("getppid", "[]")
	r.call("readv", "[]")
	r.ask(": pa_counter_create()")
	r.enable()
	if got := r.where(); got != kernel.Name {
		t.Fatalf("the requests run in %s", got)
	}
	r.define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_3],1) print(["again"])`)
	r.enable()
	r.g.do("together 3 50")
	r.g.do("interrupted 6")
	for region, want := range []string{"1×6/6/0 3×50/50/0", "1×1/1/0"} {
		if got := summary(r.rows(region + 1)); got != want {
			t.Errorf("%q: %s, want %s", r.regions[region], got, want)
		}
	}
	if got := r.ask(": pa_counter_sum([pa_c_3],2)")[1][0].Values[1].List[2].N; got != 156 {
		t.Errorf("the monitor counted %d", got)
	}
}

// Where threads make system calls for the monitor, the monitor counts itself.
func TestCallsOfTheMonitor(t *testing.T) {
	r := newRig(t, kernel.Name, start(t, buildCaller(t)))
	r.call("futex", "[]")
	r.call("mmap", "[]")
	r.enable()
	r.define("thread_reached_addr([],%#x) : print([1])", r.g.fun["child"])
	r.enable()
	for range 50 {
		r.g.do("fork 1")
	}
	for region := range r.regions {
		if got := summary(r.rows(region + 1)); got != "" {
			t.Errorf("%s: %s", r.regions[region], got)
		}
	}
	if got := r.where(); got == kernel.Name {
		t.Errorf("the requests run in %s", got)
	}
}

// An interval may begin at an address and end with a system call, wherever it is measured.
func TestFromAddressToCall(t *testing.T) {
	program := build(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, start(t, program))
			r.ask(": pa_counter_create() pa_timer_create()")
			r.define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])", r.g.fun["nap"])
			r.define(`thread_has_ended_sys_call([],"clock_nanosleep") : pa_timer_stop([pa_t_1])`)
			r.enable()
			if got := r.where(); got != placement {
				t.Fatalf("the requests run in %s", got)
			}
			r.g.do("nap 20")
			r.g.do("nap 30")
			rows := r.rows(1)
			if got := summary(rows); got != "1×2/2/0" || rows[0].least < 0.02 || rows[0].utmost < 0.03 || rows[0].sum > 30 {
				t.Errorf("%s: %+v", got, rows)
			}
		})
	}
}

// What a system call took is what passed, stops and handlers included.
func TestCallTimes(t *testing.T) {
	r := newRig(t, kernel.Name, start(t, buildCaller(t)))
	r.call("readv", "[]")
	r.call("clock_nanosleep", "[]")
	r.enable()
	stopAndGo("late 250")(r)
	for region := range r.regions {
		if w := r.rows(region + 1); len(w) != 1 || w[0].sum < 0.25 || w[0].sum > 30 {
			t.Errorf("%s: %+v", r.regions[region], w)
		}
	}
}

// Calls that threads make for the monitor are none of the program's: here it plants a
// breakpoint, behind the engine's back.
func TestMarkedCalls(t *testing.T) {
	g, p := start(t, buildCaller(t)), newPlacer(t)
	n, err := linux.Open(linux.Config{Name: "here", Ptrace: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	count := func(kind omis.EventKind, name string) omis.Store {
		s := newStore(t, p, g.ID, omis.StoreSums)
		placed, errs := p.Place([]omis.Placing{{Watch: omis.Watch{Event: kind, Proc: g.ID, Name: name}, Program: omis.Program{{Do: omis.OpAdd, Value: 1, Store: s}}}})
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		t.Cleanup(func() { p.Remove(placed) })
		placed[0].SetActive(true)
		return s
	}
	stores := []omis.Store{
		count(omis.EventSysCallStarted, "mmap"), count(omis.EventSysCallEnded, "mmap"),
		count(omis.EventSysCallStarted, "rt_sigaction"), count(omis.EventSysCallEnded, "rt_sigaction"),
	}
	hits := 0
	cancel, err := n.Watch(omis.Watch{Event: omis.EventReachedAddr, Proc: g.ID, Addr: g.fun["child"]}, func(*omis.Hit) { hits++ })
	if err != nil {
		t.Fatal(err)
	}
	g.do("fork 1")
	if err := cancel(); err != nil || hits != 1 {
		t.Errorf("%d hits, %v", hits, err)
	}
	for i, s := range stores {
		if list := rows(t, s); len(list) > 0 {
			t.Errorf("store %d has %+v", i, list)
		}
	}
}
