package probes_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis"
	"mirador/probes"
)

// load simulates the cost of probes on a process with one thread: hits of a microsecond, at a
// rate that the test can change at any time.
type load struct {
	rate atomic.Int64 // hits per second

	mu    sync.Mutex
	sum   omis.Spending
	rough bool // the cost of a hit is rough
	at    time.Time
}

// spent returns the cost so far.
func (l *load) spent() omis.Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.at.IsZero() {
		took := now.Sub(l.at)
		hits := float64(l.rate.Load()) * took.Seconds()
		l.sum = l.sum.Plus(omis.Spending{Hits: uint64(hits), Inside: hits * 1000, CPU: float64(took), Rough: l.rough})
	}
	l.at = time.Now()
	return l.sum
}

// loaded returns an application whose probes have the given number of hits per second.
func loaded(t *testing.T, rate int64) (*harness, *probes.App, *load) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	l := &load{}
	l.rate.Store(rate)
	h.spent = l.spent
	return h, h.attach("", 1), l
}

const onBudget = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:budget="2%"><codeRegion from="f.1a2b"/><metric name="COUNT"/></instrreq>`

func (h *harness) state(id string) probes.Status {
	h.Helper()
	p, err := h.registry.Probe(id)
	if err != nil {
		h.Fatal(err)
	}
	return p.Status()
}

// TestBudget checks that a probe that takes more than its budget is deactivated within a second,
// reports that, and can be activated again.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, l := loaded(t, 1000)
		if got := h.post(a, onBudget); !strings.Contains(got, `budget="2%"`) {
			t.Errorf("the answer is %s", got)
		}
		time.Sleep(10 * time.Second)
		if s := h.state("probe-1"); s.State != probes.Active || s.Notice != "" || s.Cost.Share < 0.0009 || s.Cost.Share > 0.0011 || s.Cost.PerHit != 1000 {
			t.Errorf("with 1000 hits per second the status is %+v, cost %+v", s, s.Cost)
		}
		l.rate.Store(100_000)
		time.Sleep(200 * time.Millisecond) // a single interval over the budget has no effect
		l.rate.Store(1000)
		time.Sleep(10 * time.Second)
		if s := h.state("probe-1"); s.State != probes.Active {
			t.Errorf("after a short time over the budget the status is %+v", s)
		}
		l.rate.Store(100_000)
		time.Sleep(time.Second)
		s := h.state("probe-1")
		if s.State != probes.Inactive || !strings.Contains(s.Notice, "10%") || !strings.Contains(s.Notice, "budget of 2%") || s.Cost.Share < 0.099 || s.Cost.Share > 0.101 {
			t.Errorf("after a second over the budget the status is %+v", s)
		}
		if got := h.post(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`); strings.Contains(got, "notice") {
			t.Errorf("activated again, the answer is %s", got)
		}
		time.Sleep(time.Second)
		if s := h.state("probe-1"); s.State != probes.Inactive {
			t.Errorf("activated again and over the budget, the status is %+v", s)
		}
	})
}

// TestRoughCostsAreMarked checks that a notice marks a rough cost, and that a cost is rough if the
// share is so great that small errors in it make large errors in the dilation.
func TestRoughCostsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, l := loaded(t, 300_000)
		h.post(a, strings.Replace(onBudget, "2%", "90%", 1))
		time.Sleep(time.Second)
		if s := h.state("probe-1"); s.Cost.Share < 0.29 || s.Cost.Share > 0.31 || s.Cost.Rough {
			t.Errorf("with 30%% of the time the cost is %+v", s.Cost)
		}
		l.rate.Store(600_000)
		time.Sleep(time.Second)
		if s := h.state("probe-1"); s.Cost.Share < 0.59 || s.Cost.Share > 0.61 || !s.Cost.Rough {
			t.Errorf("with 60%% of the time the cost is %+v", s.Cost)
		}
		l.mu.Lock()
		l.rough = true
		l.mu.Unlock()
		l.rate.Store(950_000)
		time.Sleep(time.Second)
		if s := h.state("probe-1"); !strings.Contains(s.Notice, "roughly 95% of the time") || !strings.Contains(s.Notice, "roughly 1000 ns each") {
			t.Errorf("the notice is %q", s.Notice)
		}
	})
}

// TestBudgetIsAnnounced checks that streams report that a probe was deactivated.
func TestBudgetIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, _ := loaded(t, 100_000)
		h.post(a, strings.Replace(onBudget, `</instrreq>`, `<measuring delivery="100000"/></instrreq>`, 1))
		documents, cancel, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		if got := line(t, (<-documents).Document); !strings.Contains(got, `gateway:notice="deactivated: it took 10%`) {
			t.Errorf("the stream has %s", got)
		}
	})
}

// TestBudgetIsChanged checks that a probe remains active with a larger budget.
func TestBudgetIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, _ := loaded(t, 100_000)
		h.post(a, onBudget)
		time.Sleep(time.Second)
		h.post(a, `<ctrlreq action="ACTIVATE" xmlns:g="urn:mirador:gateway" g:budget="20%"><probe id="probe-1"/></ctrlreq>`)
		time.Sleep(10 * time.Second)
		if s := h.state("probe-1"); s.State != probes.Active || s.Cost.Budget != 0.2 {
			t.Errorf("with a budget of 20%% the status is %+v, cost %+v", s, s.Cost)
		}
	})
}

func TestBudgetWithoutRegion(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	got := h.post(a, `<instrreq flush="true" xmlns:g="urn:mirador:gateway" g:budget="2%"><metric name="CPU_TIME"/></instrreq>`)
	if !strings.Contains(got, "a budget is for a probe on a region") {
		t.Errorf("got %s", got)
	}
}
