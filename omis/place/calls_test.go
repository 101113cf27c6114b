//go:build linux && amd64

package place_test

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
)

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
	{name: "made again after stops", regions: []string{"readv", "clock_nanosleep"}, do: rig.StopAndGo("late 300"), want: []string{"1×1/1/0", "1×1/1/0"}},
	{name: "a nap through stops", regions: []string{"clock_nanosleep", "restart_syscall"}, do: rig.StopAndGo("nap 300"), want: []string{"1×1/1/0", ""}},
	{name: "of 32-bit code", calls32: true, regions: []string{"writev", "getpid"}, do: commands("another 10"), want: []string{"", ""}},
}

// callsAs32Bit reports whether 64-bit programs may make system calls by int $0x80. A kernel
// without IA-32 emulation, and some hypervisors, send SIGSEGV instead. In that case no such
// call exists that a request could count.
func callsAs32Bit(t *testing.T, program string) bool {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader("another 1\n")
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

func resetBetweenCalls(r *rig.Monitor) {
	r.Target.Do("together 3 10")
	r.Ask(": pa_counter_reset([pa_c_1]) pa_timer_reset([pa_t_1])")
	r.Target.Do("call 20")
}

// TestCallConformance checks that measurements of system calls do not depend on the placement.
func TestCallConformance(t *testing.T) {
	program := rig.Caller(t)
	for _, s := range callScenarios {
		t.Run(s.name, func(t *testing.T) {
			if s.calls32 && !callsAs32Bit(t, program) {
				t.Attr("untested", "system calls by int $0x80, for which the kernel sends SIGSEGV")
				return
			}
			for _, placement := range []string{"trap", kernel.Name} {
				t.Run(placement, func(t *testing.T) { s.runCalls(t, placement, program) })
			}
		})
	}
}

func (s *scenario) runCalls(t *testing.T, placement, program string) {
	r := newRig(t, placement, rig.Start(t, program))
	for _, name := range s.regions {
		threads := s.threads
		if threads == "" {
			threads = "[]"
		}
		r.Call(name, threads)
	}
	r.Enable()
	r.RunsIn(placement)
	s.do(r)
	s.check(t, r)
}

// TestFromAddressToCall checks, in all placements, an interval that begins at an address and ends with a
// system call.
func TestFromAddressToCall(t *testing.T) {
	program := rig.Scenes(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(": pa_counter_create() pa_timer_create()")
			r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])", r.Target.Func["nap"])
			r.Define(`thread_has_ended_sys_call([],"clock_nanosleep") : pa_timer_stop([pa_t_1])`)
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("nap 20")
			r.Target.Do("nap 30")
			rows := r.Rows(1)
			if got := rig.Summary(rows); got != "1×2/2/0" || rows[0].Least < 0.02 || rows[0].Utmost < 0.03 || rows[0].Sum > 30 {
				t.Errorf("%s: %+v", got, rows)
			}
		})
	}
}

// TestTracesOfCalls checks that the records of system calls do not depend on the placement.
func TestTracesOfCalls(t *testing.T) {
	program := rig.Caller(t)
	for _, s := range []struct {
		name, call string
		do         func(*rig.Monitor)
		want       string
		lost       uint64
	}{
		{"calls", "getppid", commands("call 1000"), "1×1000/1000", 0},
		{"a trace that is full", "getppid", commands("call 1500"), "1×1024/1024", 3000 - 2048},
		{"threads", "getppid", commands("together 6 100"), "6×100/100", 0},
		{"made again after handlers", "readv", commands("interrupted 7"), "1×1/1", 0},
		{"left by handlers", "readv", commands("jumping 4"), "1×4/0", 0},
		{"exec", "getppid", execAgain, "1×20/20", 0},
		{"disabled in between", "getppid", disableBetween, "1×30/30", 0},
		{"deleted", "getppid", deleteAll, "1×10/10", 0},
	} {
		for _, placement := range []string{"trap", kernel.Name} {
			t.Run(s.name+"/"+placement, func(t *testing.T) {
				r := newRig(t, placement, rig.Start(t, program))
				r.Ask(": pa_trace_create(2048)")
				r.Define("thread_has_started_sys_call([],%q) : pa_trace_add([pa_b_1],%d)", s.call, begins)
				r.Define("thread_has_ended_sys_call([],%q) : pa_trace_add2([pa_b_1],%d,%d)", s.call, leaves, int64(-1)<<40)
				r.Enable()
				r.RunsIn(placement)
				s.do(r)
				if got := readTrace(r); got.String() != s.want || got.lost != s.lost {
					t.Errorf("%s, %d lost, want %s, %d lost", got, got.lost, s.want, s.lost)
				}
			})
		}
	}
}
