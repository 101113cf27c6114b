package probes_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/probes"
)

// launchedPID is the process that a fake node launches first.
const launchedPID = 5001

// linkerAt is where the dynamic linker of the fake programs reports what it has mapped.
const linkerAt = 0x7f001000

// runPaused starts a program, which reaches the place of its start as often as necessary.
func (h *harness) runPaused(pause probes.Pause, starts ...node.Start) (*probes.App, *fake.Process) {
	h.Helper()
	h.starts = starts
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			if p := h.node.Process(launchedPID); p != nil && len(p.StoppedThreads()) == 0 {
				p.Reach(launchedPID, linkerAt, 0x7ffc1000)
			}
		}
	}()
	a, err := h.registry.Run(h.Context(), "", node.Launch{Path: "/bin/mmul"}, &pause)
	close(done)
	if err != nil {
		h.Fatal(err)
	}
	return a, h.node.Process(launchedPID)
}

// TestPause starts programs paused, sets a probe, and continues them.
func TestPause(t *testing.T) {
	for where, starts := range map[string][]node.Start{
		"before its first instruction": nil,
		"before its first constructor": {{At: linkerAt, Loading: true}, {At: linkerAt, Loading: true}, {At: linkerAt}},
		"before its own first instruction, after the constructors of its libraries": {
			{At: linkerAt, Late: "the constructors of its libraries"}, {At: linkerAt, Late: "the constructors of its libraries"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t)
			a, p := h.runPaused(probes.Pause{}, starts...)
			if s := a.Status(); s.State != probes.Paused || s.Processes[0].Paused != where || s.Continues != nil {
				t.Errorf("the application is %+v; want %s", s, where)
			}
			if len(p.StoppedThreads()) != 1 {
				t.Error("the program was continued")
			}
			h.post(a, countIt)
			time.Sleep(24 * time.Hour)
			if len(p.StoppedThreads()) != 1 {
				t.Error("the program continued by itself")
			}
			if err := a.Continue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := a.Status(); s.State != probes.Running || s.Processes[0].Paused != "" || len(p.StoppedThreads()) != 0 {
				t.Errorf("the application is %+v", s)
			}
			execute(p, launchedPID)
			if got := h.post(a, valueIt); !strings.Contains(got, `value="1"`) {
				t.Error(got)
			}
			if err := a.Continue(t.Context()); kind(err) != probes.Conflict {
				t.Errorf("continued twice: %v", err)
			}
		})
	}
}

// TestPauseLease checks that documents renew the lease of a paused program, and that the
// program continues when it ends.
func TestPauseLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, p := h.runPaused(probes.Pause{Lease: time.Minute})
		for range 3 {
			time.Sleep(59 * time.Second)
			h.post(a, `<snapshotreq/>`)
		}
		if end := a.Status().Continues; end == nil || time.Until(*end) != time.Minute {
			t.Errorf("the lease ends at %v", end)
		}
		if len(p.StoppedThreads()) != 1 {
			t.Fatal("the program continued although its application was used")
		}
		time.Sleep(61 * time.Second)
		if a.State() != probes.Running || len(p.StoppedThreads()) != 0 {
			t.Error("the program does not continue")
		}
		if !strings.Contains(h.log.String(), "lease=1m0s") {
			t.Errorf("the log is %s", &h.log)
		}
		time.Sleep(time.Hour)
	})
}

// TestPauseEnds checks the ends of a pause by other causes.
func TestPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, p := h.runPaused(probes.Pause{Lease: time.Minute})
		if err := a.Release(t.Context(), false); err != nil || len(p.StoppedThreads()) != 0 {
			t.Errorf("a released program stays paused: %v", err)
		}
		time.Sleep(time.Hour)
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a, p := h.runPaused(probes.Pause{})
		p.End()
		synctest.Wait()
		if s := a.Status(); s.State != probes.Terminated || s.Processes[0].Paused != "" {
			t.Errorf("the application is %+v", s)
		}
		if err := a.Continue(t.Context()); kind(err) != probes.Conflict {
			t.Errorf("an ended program was continued: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.starts = []node.Start{{At: linkerAt, Loading: true}}
		go func() {
			time.Sleep(time.Second)
			h.node.Process(launchedPID).End()
		}()
		_, err := h.registry.Run(t.Context(), "", node.Launch{Path: "/bin/mmul"}, &probes.Pause{})
		if kind(err) != probes.CannotBeDone || !strings.Contains(err.Error(), "ended before it had loaded its libraries") {
			t.Errorf("the program ended early: %v", err)
		}
		if len(h.registry.Apps()) != 0 {
			t.Error("its application is left")
		}
	})
}
