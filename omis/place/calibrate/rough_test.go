//go:build linux

package calibrate

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/omis/program"
)

// noisy is a dummy whose calls take a constant time; on a busy machine, each call takes longer
// than the one before.
type noisy struct {
	busy  bool
	calls int
}

func (n *noisy) call(function, _, _ int) (float64, error) {
	n.calls++
	ns := 50.0
	if function > 0 {
		ns += 2
	}
	if n.busy {
		ns *= 1 + float64(n.calls)/10
	}
	return ns, nil
}

func (n *noisy) callApart(function, calls, work, _ int) (float64, error) {
	return n.call(function, calls, work)
}

// TestBusyMachine checks that the trials of a busy machine are not taken for settled.
func TestBusyMachine(t *testing.T) {
	for _, busy := range []bool{false, true} {
		one := &trial{begin: "entry", function: 1}
		d := &noisy{busy: busy}
		rough, err := run(d, []*trial{one}, program.ClockOrdered)
		if err != nil || rough != busy {
			t.Errorf("busy %v: rough %v, %v", busy, rough, err)
		}
		if most := 3*mostRounds + 2; busy && d.calls != most || !busy && d.calls >= most/2 {
			t.Errorf("busy %v: %d calls", busy, d.calls)
		}
	}
}

// TestRoughCostsAreNotKept measures while the machine is busy, and again until it is quiet:
// rough costs are known as such, they are not stored, and Refine replaces them.
func TestRoughCostsAreNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "costs.json")
	measured := map[string]int{}
	k := New(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	k.measure = func(name string) (map[string]program.Cost, error) {
		measured[name]++
		rough := name == "rough" && measured[name] < 4
		return map[string]program.Cost{"entry": {Count: 2}, "return": {Count: float64(measured[name]), Rough: rough}}, nil
	}
	if err := errors.Join(k.Try("rough"), k.Try("good"), k.Try("rough")); err != nil {
		t.Fatal(err)
	}
	if c, ok := k.Cost("rough", "return"); !ok || !c.Rough || measured["rough"] != 1 {
		t.Errorf("%+v, %v, measured %d times", c, ok, measured["rough"])
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), `"rough"`) || !strings.Contains(string(text), `"good"`) {
		t.Errorf("%s, %v", text, err)
	}
	k.Refine(time.Millisecond)
	if c, _ := k.Cost("rough", "return"); c.Rough || measured["rough"] != 4 || measured["good"] != 1 {
		t.Errorf("%+v, measured %v", c, measured)
	}
	again := New(Config{File: file})
	if c, ok := again.Cost("rough", "return"); !ok || c.Count != 4 {
		t.Errorf("kept was %+v, %v", c, ok)
	}
}

// TestRefineEndsWithClose closes Costs during the pause.
func TestRefineEndsWithClose(t *testing.T) {
	k := New(Config{Log: slog.New(slog.DiscardHandler)})
	k.measure = func(string) (map[string]program.Cost, error) {
		return map[string]program.Cost{"entry": {Rough: true}}, nil
	}
	if err := k.Try("rough"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { k.Refine(time.Hour); close(done) }()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("Refine goes on")
	}
}

// TestWant checks that Want waits for a measurement, unless another goroutine measures beside the
// requests.
func TestWant(t *testing.T) {
	for _, beside := range []bool{false, true} {
		k := New(Config{Beside: beside, Log: slog.New(slog.DiscardHandler)})
		k.measure = func(string) (map[string]program.Cost, error) {
			return map[string]program.Cost{"entry": {Count: 1}}, nil
		}
		k.Want("inline")
		if _, ok := k.Cost("inline", "entry"); ok == beside {
			t.Errorf("measured beside the requests: %v, but the cost is known: %v", beside, ok)
		}
		k.Calibrate("inline")
		if _, ok := k.Cost("inline", "entry"); !ok {
			t.Error("Calibrate has not waited")
		}
	}
}
