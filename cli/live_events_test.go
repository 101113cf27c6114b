package cli

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/omis"
	"mirador/omis/node"
)

// TestEventsLive makes a process cause events. It checks how many are reported, and compares the
// event context parameters with the process's own report.
func TestEventsLive(t *testing.T) {
	l, w := startWitness(t)
	for _, c := range []struct {
		event, param string
		what         string
		n            int
		said         bool // the parameter equals the witness's report
	}{
		{"thread_reached_addr([p_1]," + fmt.Sprint(w.work) + ")", "$thread", "work", 7, false},
		{"thread_creates_thread([p_1])", "$new_thread", "threads", 5, false},
		{"thread_has_terminated([p_1])", "$thread", "threads", 5, false},
		{"thread_creates_proc([p_1])", "$new_proc", "processes", 3, false},
		{`thread_has_started_lib_call([p_1],"rand_r")`, "$par1", "library", 6, false},
		{`thread_has_ended_lib_call([p_1],"rand_r")`, "$par1", "library", 6, true},
		{`thread_has_started_sys_call([p_1],"getppid")`, "$thread", "system", 9, false},
		{`thread_has_ended_sys_call([p_1],"getppid")`, "$par1", "system", 1, true},
		{"thread_received_signal([p_1],[10])", "$sig", "raise", 4, false},
	} {
		name, _, _ := strings.Cut(c.event, "(")
		t.Run(name, func(t *testing.T) {
			d := l.define(t, "%s : print([%s])", c.event, c.param)
			said := w.says(c.what, c.n)
			d.await(t, c.n)
			if got := d.print(0); c.said && strings.Join(got, " ") != strings.Join(said, " ") {
				t.Errorf("%s is %v, the witness reports %v", c.param, got, said)
			}
			l.ask(t, "csr_delete([%s])", d.csr)
			w.says(c.what, c.n)
			d.await(t, c.n)
		})
	}
}

// TestBirthsLive checks that the tokens in the event context parameters belong to the threads and
// processes that the witness has created.
func TestBirthsLive(t *testing.T) {
	l, w := startWitness(t)
	threads := l.define(t, "thread_creates_thread([p_1]) : thread_get_info([$new_thread],%#x)", node.ThreadParent|node.ThreadLocalID)
	said, main := w.says("threads", 4), l.token(t, w.pid)
	threads.await(t, 4)
	for i, values := range threads.all {
		wantText(t, "parent and id", strings.Join(texts(values), " "), main+" "+said[i])
	}
	l.ask(t, "csr_delete([])")
	processes := l.define(t, "thread_creates_proc([p_1]) : proc_attach([$new_proc]) proc_get_info([$new_proc],%#x)", node.ProcParent|node.ProcLocalID)
	said = w.says("processes", 3)
	processes.await(t, 3)
	for i, values := range processes.all {
		wantText(t, "parent and id", strings.Join(texts(values), " "), "p_1 "+said[i])
	}
}

// TestSchedulingLive compares events with the kernel's own counts of context switches.
func TestSchedulingLive(t *testing.T) {
	l, w := startWitness(t)
	main := l.token(t, w.pid)
	events := make(map[string]*told)
	for _, name := range []string{"thread_has_blocked", "thread_has_been_unblocked", "thread_has_been_scheduled", "thread_has_been_descheduled"} {
		events[name] = l.define(t, "%s([%s]) : print([$thread])", name, main)
	}
	for _, name := range []string{"proc_has_been_scheduled", "proc_has_been_descheduled"} {
		events[name] = l.define(t, "%s([p_1]) : print([$thread])", name)
	}
	counts := func() (voluntary, all int) {
		eventually(t, "the witness listens", func() bool { return status(t, w.pid, w.pid, "State") == "S (sleeping)" })
		voluntary, _ = strconv.Atoi(status(t, w.pid, w.pid, "voluntary_ctxt_switches"))
		forced, _ := strconv.Atoi(status(t, w.pid, w.pid, "nonvoluntary_ctxt_switches"))
		return voluntary, voluntary + forced
	}
	before := make(map[string]int)
	voluntary, all := counts()
	for name, d := range events {
		before[name] = ofThread(d, main)
	}
	w.says("nap", 20)
	slept, switched := counts()
	slept, switched = slept-voluntary, switched-all
	if slept < 20 {
		t.Errorf("the kernel counts %d switches only", slept)
	}
	for name, d := range events {
		want := switched
		if strings.HasSuffix(name, "blocked") {
			want = slept
		}
		eventually(t, fmt.Sprintf("%s %d times", name, want), func() bool { return ofThread(d, main)-before[name] >= want })
		if got := ofThread(d, main) - before[name]; got != want {
			t.Errorf("%s: reported %d times, the kernel counts %d", name, got, want)
		}
	}
	// For a process every thread counts, including the spinning one.
	eventually(t, "the other thread is scheduled", func() bool {
		d := events["proc_has_been_scheduled"]
		return ofThread(d, l.token(t, w.spinner)) > 0
	})
}

// ofThread counts the replies about a thread.
func ofThread(d *told, thread string) (n int) {
	for _, t := range d.print(0) {
		if t == thread {
			n++
		}
	}
	return n
}

// TestStopsLive compares the state of stopped and suspended threads with /proc, and checks the
// events about them.
func TestStopsLive(t *testing.T) {
	l, w := startWitness(t)
	events := make(map[string]*told)
	for _, name := range []string{"thread_has_been_stopped", "thread_has_been_continued", "proc_has_been_stopped", "proc_has_been_continued"} {
		object := "p_1"
		events[name] = l.define(t, "%s([%s]) : print([$proc])", name, object)
	}
	spinner := l.token(t, w.spinner)
	stands := func(tid int) bool { return strings.HasPrefix(status(t, w.pid, tid, "State"), "t") }
	check := func(what string, spinnerStands, mainStands bool) {
		t.Helper()
		if stands(w.spinner) != spinnerStands || stands(w.pid) != mainStands {
			t.Errorf("%s: spinner %s, main %s", what, status(t, w.pid, w.spinner, "State"), status(t, w.pid, w.pid, "State"))
		}
	}
	counts := func(want string) {
		t.Helper()
		eventually(t, want, func() bool {
			return want == fmt.Sprint(events["thread_has_been_stopped"].count(), events["thread_has_been_continued"].count(),
				events["proc_has_been_stopped"].count(), events["proc_has_been_continued"].count())
		})
	}
	l.ask(t, "thread_stop([%s])", spinner)
	check("one is stopped", true, false)
	counts("1 0 0 0")
	l.ask(t, "thread_stop([p_1])")
	check("all are stopped", true, true)
	counts("3 0 1 0")
	l.ask(t, "thread_continue([%s])", spinner)
	check("one continues", false, true)
	l.ask(t, "thread_continue([p_1])")
	check("all continue", false, false)
	counts("3 3 1 1")
	l.ask(t, "thread_suspend([%s]) thread_suspend([%s])", spinner, spinner)
	check("suspended twice", true, false)
	l.ask(t, "thread_continue([%s]) thread_resume([%s])", spinner, spinner)
	check("resumed once", true, false)
	l.ask(t, "thread_resume([%s])", spinner)
	check("resumed twice", false, false)
	counts("3 3 1 1")
	wantText(t, "afterwards", fmt.Sprint(w.says("work", 3)), "[12]")
}

// TestEndLive checks that the end of a killed process is reported once, after its last values were
// read, and that the process's token is unknown afterwards.
func TestEndLive(t *testing.T) {
	l, w := startWitness(t)
	d := l.define(t, "proc_has_terminated([p_1]) : print([$proc])")
	last := l.define(t, "proc_has_terminated([p_1]) : proc_get_info([$proc],%#x)", node.ProcTotalTime|node.ProcMemorySize)
	l.ask(t, "proc_send_signal([p_1],%d)", syscall.SIGTERM)
	d.await(t, 1)
	last.await(t, 1)
	err := w.cmd.Wait()
	used := w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
	if total, memory := last.all[0][0].Float, last.all[0][1].N; total > used.Seconds() || used.Seconds()-total > 0.1 || memory == 0 {
		t.Errorf("at its exit it had used %v s and had %v bytes, its parent learned of %v", total, memory, used)
	}
	if s, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended by %v", err)
	}
	wantText(t, "who", strings.Join(d.print(0), " "), "p_1")
	l.refused(t, omis.UnknownObject, "proc_get_info([p_1],%#x)", node.ProcLocalID)
}
