//go:build linux && amd64

package kernel_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// straceCounts returns the system calls that strace counts while the program executes some lines and ends.
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
	program := rig.Caller(t)
	lines := []string{"call 30", "together 4 100", "onebyone 7 3", "fork 5", "nap 1", "late 5"}
	want := straceCounts(t, program, lines...)
	r := newRig(t, kernel.Name, rig.Start(t, program))
	names := []string{"getppid", "clock_nanosleep", "readv", "clone3", "wait4", "madvise"}
	for _, name := range names {
		r.Call(name, "[]")
	}
	r.Enable()
	for _, line := range lines {
		r.Target.Do("%s", line)
	}
	for i, name := range names {
		var sum, ended int64
		for _, w := range r.Rows(i + 1) {
			sum, ended = sum+w.Count, ended+w.Intervals
		}
		if name == "getppid" {
			sum, ended = sum+5, ended+5 // of the child, which strace follows
		}
		if fmt.Sprint(sum) != want[name] || ended != sum {
			t.Errorf("%s: %d started, %d ended, strace counts %q", name, sum, ended, want[name])
		}
	}
}

// A counter of all system calls is the sum of the counters of each call.
func TestAllCalls(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Caller(t)))
	for _, name := range []string{"", "getppid", "read", "write", "clone3"} {
		r.Call(name, "[]")
	}
	r.Enable()
	r.Target.Do("call 1000")
	r.Target.Do("call 1")
	// The target began to read the first line before the requests were enabled, so that read is not
	// counted. The target waits in the read of the line after "call 1", so that read has started and not
	// ended.
	for region, want := range []string{"1×1005/1004/0", "1×1001/1001/0", "1×2/1/0", "1×2/2/0", ""} {
		got := rig.Summary(r.Rows(region + 1))
		for late := time.Now().Add(30 * time.Second); got != want && time.Now().Before(late); got = rig.Summary(r.Rows(region + 1)) {
			time.Sleep(time.Millisecond) // it has answered, but is not waiting yet
		}
		if got != want {
			t.Errorf("%q: %s, want %s", r.Regions[region], got, want)
		}
	}
}

// Requests that the monitor executes and requests that run in the kernel count the same.
func TestCallsBesideTheMonitor(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Caller(t)))
	r.Call("getppid", "[]")
	r.Call("readv", "[]")
	r.Ask(": pa_counter_create()")
	r.Enable()
	r.RunsIn(kernel.Name)
	r.Define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_3],1) print(["again"])`)
	r.Enable()
	r.Target.Do("together 3 50")
	r.Target.Do("interrupted 6")
	for region, want := range []string{"1×6/6/0 3×50/50/0", "1×1/1/0"} {
		if got := rig.Summary(r.Rows(region + 1)); got != want {
			t.Errorf("%q: %s, want %s", r.Regions[region], got, want)
		}
	}
	if got := r.Ask(": pa_counter_sum([pa_c_3],2)")[1][0].Values[1].List[2].N; got != 156 {
		t.Errorf("the monitor counted %d", got)
	}
}

// TestCallsOfTheMonitor checks that system calls stay counted in the kernel while threads are held for another
// request, and that the calls that the threads make for that do not count.
func TestCallsOfTheMonitor(t *testing.T) {
	const rounds = 50
	for how, byPtrace := range map[string]bool{node.HeldByRendezvous: false, node.HeldByPtrace: true} {
		t.Run(how, func(t *testing.T) {
			r := rig.Open(t, linux.Config{Name: "here", Ptrace: byPtrace}, inKernel, rig.Start(t, rig.Caller(t)))
			own := map[string]string{"wait4": fmt.Sprintf("1×%d/%[1]d/0", rounds)}
			for _, name := range []string{"futex", "gettid", "mmap", "rt_sigaction", "rt_sigreturn", "restart_syscall", "wait4"} {
				r.Call(name, "[]")
			}
			r.Ask(": pa_counter_create()")
			r.Enable()
			counters := len(r.CSRs)
			r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1) proc_get_info([$proc],1)", r.Target.Func["child"], len(r.Regions)+1)
			r.Enable()
			for range rounds {
				r.Target.Do("fork 1")
			}
			for region, name := range r.Regions {
				if got := rig.Summary(r.Rows(region + 1)); got != own[name] {
					t.Errorf("%s: %q, want %q", name, got, own[name])
				}
			}
			for i, csr := range r.CSRs {
				x, err := r.Tool.State(omis.Token(csr))
				if want := map[bool]string{true: kernel.Name, false: "trap"}[i < counters]; err != nil || x.Placement.Name != want {
					t.Errorf("%s runs in %s, want %s: %v", csr, x.Placement, want, err)
				}
			}
			if x, err := r.Tool.State(omis.Token(r.CSRs[counters])); err != nil || strings.Contains(x.Placement.Why, "held by a jump") == byPtrace {
				t.Errorf("%v, %v", x.Placement, err)
			}
			if got := r.Ask(": pa_counter_sum([pa_c_%d],2)", len(r.Regions)+1)[1][0].Values[1].List[2].N; got != rounds {
				t.Errorf("threads were held %d times, want %d", got, rounds)
			}
		})
	}
}

// The duration of a system call includes stops and signal handlers.
func TestCallTimes(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Caller(t)))
	r.Call("readv", "[]")
	r.Call("clock_nanosleep", "[]")
	r.Enable()
	rig.StopAndGo("late 250")(r)
	for region := range r.Regions {
		if w := r.Rows(region + 1); len(w) != 1 || w[0].Sum < 0.25 || w[0].Sum > 30 {
			t.Errorf("%s: %+v", r.Regions[region], w)
		}
	}
}

// Programs in the kernel do not count the calls that threads make for the monitor: these calls are marked
// (calls.Mark), also where the node is used without an engine.
func TestMarkedCalls(t *testing.T) {
	g, p := rig.Start(t, rig.Caller(t)), newPlacer(t)
	n, err := linux.Open(linux.Config{Name: "here", Ptrace: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	count := func(kind node.EventKind, name string) program.Store {
		s := newStore(t, p, g.ID, program.StoreSums)
		placed, errs := p.Place([]program.Placing{{Watch: node.Watch{Event: kind, Proc: g.ID, Name: name}, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: s}}}})
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		t.Cleanup(func() { p.Remove(placed) })
		placed[0].SetActive(true)
		return s
	}
	stores := []program.Store{
		count(node.EventSysCallStarted, "mmap"), count(node.EventSysCallEnded, "mmap"),
		count(node.EventSysCallStarted, "rt_sigaction"), count(node.EventSysCallEnded, "rt_sigaction"),
	}
	hits := 0
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Func["child"]}, func(*node.Hit) { hits++ })
	if err != nil {
		t.Fatal(err)
	}
	g.Do("fork 1")
	if err := cancel(); err != nil || hits != 1 {
		t.Errorf("%d hits, %v", hits, err)
	}
	for i, s := range stores {
		if list := rows(t, s); len(list) > 0 {
			t.Errorf("store %d has %+v", i, list)
		}
	}
}
