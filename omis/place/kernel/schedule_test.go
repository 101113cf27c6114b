//go:build linux && amd64

package kernel_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// scheduling counts how often threads get and lose processors, and times how long they wait: counters 1 to
// 4 (got, lost, blocked, unblocked), timer 1.
func scheduling(r *rig.Monitor, threads string) {
	r.T.Helper()
	r.Ask(": pa_counter_create() pa_counter_create() pa_counter_create() pa_counter_create() pa_timer_create()")
	r.Define("thread_has_been_scheduled(%s) : pa_counter_add([pa_c_1],1)", threads)
	r.Define("thread_has_been_descheduled(%s) : pa_counter_add([pa_c_2],1)", threads)
	r.Define("thread_has_blocked(%s) : pa_counter_add([pa_c_3],1) pa_timer_start([pa_t_1])", threads)
	r.Define("thread_has_been_unblocked(%s) : pa_counter_add([pa_c_4],1) pa_timer_stop([pa_t_1])", threads)
	r.Enable()
}

// total returns the sum of a counter.
func total(r *rig.Monitor, counter int) int64 {
	r.T.Helper()
	list := r.Ask(": pa_counter_sum([pa_c_%d],2)", counter)[1][0].Values[1].List
	if len(list) == 0 {
		return 0
	}
	n, _ := list[2].Int64()
	return n
}

// onFirstProcessor keeps the target on the first processor. Other processors were seen to run threads
// without an event, which is then raised later.
func onFirstProcessor(t *testing.T, g *rig.Target) {
	t.Helper()
	tids, err := proc.Threads(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	var set unix.CPUSet
	set.Set(0)
	for _, tid := range tids {
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			t.Fatal(err)
		}
	}
}

// switches waits until the target waits for a command, and returns the context switches that the kernel
// has counted.
func switches(t *testing.T, g *rig.Target) (voluntary, involuntary int64) {
	t.Helper()
	g.Rest()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.ID.PID))
	if err != nil {
		t.Fatal(err)
	}
	_, counts, _ := strings.Cut(string(text), "voluntary_ctxt_switches:")
	if _, err := fmt.Sscanf(counts, "%d\nnonvoluntary_ctxt_switches:%d", &voluntary, &involuntary); err != nil {
		t.Fatal(err)
	}
	return voluntary, involuntary
}

// The requests count as many switches as the kernel does, in each placement.
func TestSwitches(t *testing.T) {
	program := rig.Caller(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			onFirstProcessor(t, r.Target)
			scheduling(r, "[t_1]")
			r.RunsIn(placement)
			v, i := switches(t, r.Target)
			for range 40 {
				r.Target.Do("nap 2")
			}
			r.Target.Do("call 1")
			voluntary, involuntary := switches(t, r.Target)
			voluntary, involuntary = voluntary-v, involuntary-i
			rig.Until(t, "what the monitor is told is counted", func() bool {
				return total(r, 4) >= voluntary-1 && total(r, 1) >= voluntary+involuntary-1
			})
			if got := total(r, 3); got < voluntary-1 || got > voluntary+1 || voluntary < 40 {
				t.Errorf("blocked %d times, the kernel counts %d voluntary switches", got, voluntary)
			}
			if got := total(r, 2); got < voluntary+involuntary-1 || got > voluntary+involuntary+1 {
				t.Errorf("descheduled %d times, the kernel counts %d switches", got, voluntary+involuntary)
			}
			if a, b := total(r, 1), total(r, 2); a < b-1 || a > b+1 {
				t.Errorf("scheduled %d times, descheduled %d", a, b)
			}
			if a, b := total(r, 4), total(r, 3); a < b-1 || a > b+1 {
				t.Errorf("unblocked %d times, blocked %d", a, b)
			}
		})
	}
}

// Threads are measured separately, on whatever processors they run, including new threads. They wait as
// long as they were told to.
func TestBlockedTime(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Caller(t)))
	scheduling(r, "[]")
	for range 5 {
		r.Target.Do("late 40") // the thread naps, and the first thread waits for it
	}
	list := r.Ask(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	rows := 0
	for ; len(list) > 0; list = list[9:] {
		naps := 1.0
		if list[1].Token() == "t_1" {
			naps = 5
		}
		if n, sum := list[2].N, list[4].Float; sum < 0.039*naps*0.9 || sum > 30 {
			t.Errorf("thread %s: %d times, %g s", list[1].Token(), n, sum)
		}
		rows++
	}
	if rows != 6 {
		t.Errorf("%d threads have waited", rows)
	}
}

// A thread that reads from the disk without caches waits for the disk, a thread that naps does not. How
// often it waits depends on the disk, which may have finished before the thread waits.
func TestIOWait(t *testing.T) {
	program := rig.Caller(t)
	for _, placement := range []string{"trap", kernel.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(": pa_counter_create() pa_counter_create() pa_timer_create()")
			r.Define("thread_has_blocked([]) : pa_counter_add([pa_c_1],1)")
			r.Define("pa_thread_has_blocked_on_io([]) : pa_counter_add([pa_c_2],1) pa_timer_start([pa_t_1])")
			r.Define("thread_has_been_unblocked([]) : pa_timer_stop([pa_t_1])")
			r.Enable()
			r.RunsIn(placement)
			for range 10 {
				r.Target.Do("nap 2")
			}
			rig.Until(t, "the naps are counted", func() bool { return total(r, 1) >= 10 })
			if n := total(r, 2); n != 0 {
				t.Errorf("%d naps waited for a disk", n)
			}
			asked := int64(0)
			rig.Until(t, "a read waits for the disk, and goes on", func() bool {
				if got := r.Target.Do("disk 20"); got != "done 0" {
					t.Fatalf("the target said %q", got)
				}
				asked += 20
				list := r.Ask(": pa_timer_sum([pa_t_1],2)")[1][0].Values[1].List
				return len(list) > 4 && list[2].N > 0 && list[4].Float > 0
			})
			if n, all := total(r, 2), total(r, 1); n < 1 || n >= all {
				t.Errorf("%d of %d waits were for the disk, which was asked %d times", n, all, asked)
			}
		})
	}
}

// A counter that counts at an address and at the loss of a processor is kept in two places, and reported as
// one.
func TestAddressesAndSwitchesTogether(t *testing.T) {
	r := newRig(t, kernel.Name, rig.Start(t, rig.Scenes(t)))
	onFirstProcessor(t, r.Target)
	r.Ask(": pa_counter_create()")
	r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1000000)", r.Target.Func["nap"])
	r.Define("thread_has_blocked([]) : pa_counter_add([pa_c_1],1)")
	r.Enable()
	before, _ := switches(t, r.Target)
	r.Target.Do("nap 5")
	r.Target.Do("nap 5")
	after, _ := switches(t, r.Target)
	rig.Until(t, "what the monitor is told is counted", func() bool { return total(r, 1)%1000000 >= after-before-1 })
	if got, want := total(r, 1), after-before; got/1000000 != 2 || got%1000000 < want-1 || got%1000000 > want+1 || want < 3 {
		t.Errorf("counted %d, the kernel counts %d voluntary switches", got, want)
	}
	if got := r.Where(); got == kernel.Name {
		t.Errorf("both run in %s", got)
	}
}

// A trace has the loss of the processor, the wait and the next processor in this order, at the times that
// the timer measures.
func TestTraceOfWaits(t *testing.T) {
	g, p := rig.Start(t, rig.Caller(t)), newPlacer(t)
	onFirstProcessor(t, g)
	s, waits := newTrail(t, p, g.ID), newStore(t, p, g.ID, program.StoreIntervals)
	placing := func(event node.EventKind, steps ...program.Op) program.Placing {
		return program.Placing{Watch: node.Watch{Event: event, Proc: g.ID}, Program: steps}
	}
	note := func(mark int32) program.Op {
		return program.Op{Do: program.OpTrace, Mark: mark, Store: s, Room: 1 << 12}
	}
	const blocked, unblocked = 1, 2
	placed, errs := p.Place([]program.Placing{
		placing(node.EventBlocked, note(blocked), program.Op{Do: program.OpStart, Store: waits}),
		placing(node.EventUnblocked, note(unblocked), program.Op{Do: program.OpStop, Store: waits}),
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	g.Rest()
	for _, pl := range placed {
		pl.SetActive(true)
	}
	for range 20 {
		g.Do("nap 2")
	}
	g.Rest()
	if err := p.Remove(placed); err != nil {
		t.Fatal(err)
	}
	var since, sum, ended int64
	for i, r := range take(t, s, 0) {
		switch {
		case i == 0 && r.Mark == unblocked: // it waited before
		case r.Mark == blocked && since == 0:
			since = r.Time
		case r.Mark == unblocked && since != 0:
			sum, ended, since = sum+r.Time-since, ended+1, 0
		default:
			t.Fatalf("record %d is %+v", i, r)
		}
	}
	list := rows(t, waits)
	if len(list) != 1 || list[0].Count != ended || list[0].Sum.Lo != uint64(sum) || ended < 20 {
		t.Errorf("%d waits took %d ns by the trace, the rows are %+v", ended, sum, list)
	}
}
