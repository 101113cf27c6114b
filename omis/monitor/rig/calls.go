//go:build linux && amd64

package rig

import (
	"syscall"
	"time"
)

// Call counts and times a system call, for some threads or all of them ("[]").
func (r *Monitor) Call(name, threads string) {
	r.T.Helper()
	r.CallBy("ordered", name, threads)
}

// CallBy counts and times a system call by a clock.
func (r *Monitor) CallBy(clock, name, threads string) {
	r.T.Helper()
	r.Regions = append(r.Regions, name)
	i := len(r.Regions)
	r.Ask(`: pa_counter_create() pa_timer_create2("%s")`, clock)
	r.Define("thread_has_started_sys_call(%s,%q) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%d])", threads, name, i, i)
	r.Define("thread_has_ended_sys_call(%s,%q) : pa_timer_stop([pa_t_%d])", threads, name, i)
}

// StopAndGo returns a function that sends the target a command, and stops and continues the
// target several times while it executes the command.
func StopAndGo(line string) func(*Monitor) {
	return func(r *Monitor) {
		r.Target.Tell("%s", line)
		for range 3 {
			time.Sleep(50 * time.Millisecond)
			r.Target.Cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(20 * time.Millisecond)
			r.Target.Cmd.Process.Signal(syscall.SIGCONT)
		}
		r.Target.Line()
	}
}
