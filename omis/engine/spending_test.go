package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

// spent returns the cost of requests.
func (b *bench) spent(requests ...omis.Token) omis.Spending {
	b.Helper()
	s, err := b.tool.Spent(requests)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// times returns the sum of a timer's intervals, and of their squares, in nanoseconds.
func (b *bench) times() (sum, squares float64) {
	b.Helper()
	row := b.reply(": pa_timer_read([pa_t_1])")[1][0].Values[1].List
	sum, _ = row[4].Number()
	squares, _ = row[5].Number()
	return sum * 1e9, squares * 1e18
}

// TestBiasIsSubtracted checks that exactly the bias is subtracted from each interval.
func TestBiasIsSubtracted(t *testing.T) {
	b, _, p := startPlacing(t)
	region(b)
	for range 3 {
		p.Reach(11, 0x10, 100)
		time.Sleep(time.Millisecond)
		p.Reach(11, 0x20, 100)
	}
	sum, squares := b.times()
	b.node.SetCost("fake", "kind", program.Cost{After: 100_000, Before: 20_000})
	less, lessSquares := b.times()
	const bias = 120_000
	if got := sum - less; math.Abs(got-3*bias) > 1 {
		t.Errorf("the sum of three intervals is shorter by %.0f ns, want %d", got, 3*bias)
	}
	if want := squares - 2*bias*sum + 3*bias*bias; math.Abs(lessSquares-want) > 1e-9*squares {
		t.Errorf("the sum of squares is %g, want %g", lessSquares, want)
	}
	x, err := b.tool.State("c_2")
	if err != nil || x.Placement.Bias != bias {
		t.Errorf("the reported bias is %d (%v)", x.Placement.Bias, err)
	}
	b.ask(": csr_delete([c_1,c_2])") // the timer takes over the rows of the stores
	if kept, _ := b.times(); math.Abs(kept-less) > 1 {
		t.Errorf("after the probes were removed the sum is %.0f, before it was %.0f", kept, less)
	}
}

// TestBiasOfHoldingIsSubtracted checks that the monitor subtracts the cost of holding the thread.
func TestBiasOfHoldingIsSubtracted(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	b.node.SetCost("trap", "ptrace", program.Cost{After: 1e15, Before: 1e14})
	region(b)
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	if sum, _ := b.times(); sum != 0 {
		t.Errorf("the interval is %.0f ns, want 0: the bias exceeds it", sum)
	}
	b.node.SetCost("trap", "ptrace", program.Cost{After: -1e9, Before: -2e9})
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	if sum, _ := b.times(); sum < 3e9 || sum > 4e9 {
		t.Errorf("the interval is %.0f ns, want slightly more than the negative bias of 3 s", sum)
	}
}

func TestSpending(t *testing.T) {
	b, _, p := startPlacing(t)
	b.node.SetCost("fake", "kind", program.Cost{Count: 10, Time: 30})
	region(b)
	b.ask(`thread_reached_addr([],0x30) : pa_counter_add([pa_c_1],1)`)
	b.ask(": csr_enable([c_3])")
	for range 5 {
		p.Reach(11, 0x10, 100)
		p.Reach(11, 0x20, 100)
	}
	p.Reach(12, 0x10, 100)
	check := func(when string, hits uint64, inside float64, requests ...omis.Token) {
		t.Helper()
		if s := b.spent(requests...); s.Hits != hits || s.Inside != inside || s.Outside != 0 || s.Rough || s.Uncounted {
			t.Errorf("%s: %v cost %+v, want %d hits and %.0f ns", when, requests, s, hits, inside)
		}
	}
	check("in place", 5, 150, "c_2")
	check("in place", 11, 5*30+3*30+3*10, "c_1", "c_2", "c_3") // c_1 and c_3 share a counter with six hits
	b.ask(": pa_counter_reset([pa_c_1]) pa_timer_reset([pa_t_1])")
	check("after a reset", 5, 150, "c_2")
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	check("after a reset", 6, 180, "c_2")
	b.ask(": csr_disable([c_2])")
	check("disabled", 6, 180, "c_2")
	b.ask(": csr_delete([c_1])")
	check("with one removed", 6, 180, "c_2")
	p.Reach(11, 0x30, 100)
	check("with one removed", 5, 45, "c_3") // half of the seven hits of the shared counter, and one alone
}

// TestSpendingOfLatecomers checks that a program that shares the counter of an earlier program has no share
// in earlier hits.
func TestSpendingOfLatecomers(t *testing.T) {
	b, _, p := startPlacing(t)
	region(b)
	for range 10 {
		p.Reach(11, 0x10, 100)
	}
	b.ask(`thread_reached_addr([],0x30) : pa_counter_add([pa_c_1],1)`)
	b.ask(": csr_enable([c_3])")
	if first, later := b.spent("c_1"), b.spent("c_3"); first.Hits != 10 || later.Hits != 0 {
		t.Errorf("before: %+v and %+v", first, later)
	}
	p.Reach(11, 0x30, 100)
	p.Reach(11, 0x30, 100)
	if first, later := b.spent("c_1"), b.spent("c_3"); first.Hits != 11 || later.Hits != 1 {
		t.Errorf("each program must have one of the two hits: %+v and %+v", first, later)
	}
	b.ask(": csr_delete([c_1])")
	p.Reach(11, 0x30, 100)
	if later := b.spent("c_3"); later.Hits != 2 {
		t.Errorf("alone: %+v", later)
	}
}

// TestSpendingAfterRestart checks that hits before the monitor adopted a program cost nothing.
func TestSpendingAfterRestart(t *testing.T) {
	_, placer, p := kept(t)
	for range 100 {
		p.Reach(11, 0x10, 100)
	}
	b, _ := successor(t, placer)
	watchRegion(b)
	if s := b.spent("c_1"); s.Hits != 0 {
		t.Errorf("after the restart: %+v", s)
	}
	p.Reach(11, 0x10, 100)
	if s := b.spent("c_1"); s.Hits != 1 {
		t.Errorf("after a hit: %+v", s)
	}
}

// TestSpendingOfHeldThreads checks that holding threads is not part of the processes' CPU time.
func TestSpendingOfHeldThreads(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	b.node.SetCost("trap", "ptrace", program.Cost{Count: 7000, Time: 9000})
	region(b)
	for range 4 {
		p.Reach(11, 0x10, 100)
	}
	if s := b.spent("c_1"); s.Hits != 4 || s.Outside != 4*9000 || s.Inside != 0 {
		t.Errorf("held: %+v", s)
	}
	if x, err := b.tool.State("c_1"); err != nil || !x.Placement.Measured || !x.Placement.Rough() {
		t.Errorf("the cost of holding depends on other load: %+v, %v", x.Placement, err)
	}
	b.ask(": csr_disable([c_1])")
	p.Reach(11, 0x10, 100)
	if s := b.spent("c_1"); s.Hits != 4 || s.Outside != 4*9000 {
		t.Errorf("held, then disabled: %+v", s)
	}
}

// TestSpendingByCostsOfABusyMachine checks that a cost that was not measured well is marked
// as rough, and is not subtracted from times.
func TestSpendingByCostsOfABusyMachine(t *testing.T) {
	b, _, _ := startPlacing(t)
	region(b)
	for _, rough := range []bool{false, true} {
		b.node.SetCost("fake", "kind", program.Cost{Count: 10, Time: 20, Before: 8, After: 8, Rough: rough})
		x, err := b.tool.State("c_1")
		if p := x.Placement; err != nil || p.Rough() != rough || p.Cost != 20 || (p.Bias == 0) != rough {
			t.Errorf("rough %v: %+v, %v", rough, p, err)
		}
	}
}

// TestSpendingByRoughCosts checks that costs that were not measured come from the table and are rough.
func TestSpendingByRoughCosts(t *testing.T) {
	b, _, p := startPlacing(t)
	region(b)
	p.Reach(11, 0x10, 100)
	p.Info.TotalTime = 2 * time.Second
	time.Sleep(5 * time.Millisecond) // the engine does not read the CPU time more often
	if s := b.spent("c_1"); s.CPU != 2e9 || s.Hits != 1 || s.Inside != 1 || !s.Rough {
		t.Errorf("got %+v", s)
	}
	if x, err := b.tool.State("c_1"); err != nil || !x.Placement.Rough() {
		t.Errorf("placed as %+v, %v", x.Placement, err)
	}
	b.node.SetCost("fake", "kind", program.Cost{Count: 2, Time: 2})
	if x, err := b.tool.State("c_1"); err != nil || x.Placement.Rough() {
		t.Errorf("with figures of the machine, placed as %+v, %v", x.Placement, err)
	}
}

// TestUncountedSpending checks that hits are unknown if requests add different numbers to one counter.
func TestUncountedSpending(t *testing.T) {
	b, _, p := startPlacing(t)
	b.ask(": pa_counter_create()")
	b.ask(`thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],2)`)
	b.ask(`thread_reached_addr([],0x20) : pa_counter_add([pa_c_1],2)`)
	b.ask(": csr_enable([])")
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x20, 100)
	if s := b.spent("c_1", "c_2"); s.Hits != 2 || s.Uncounted {
		t.Errorf("two that add the same: %+v", s)
	}
	b.ask(`thread_reached_addr([],0x30) : pa_counter_add([pa_c_1],3)`)
	b.ask(": csr_enable([c_3])")
	if s := b.spent("c_1", "c_2", "c_3"); !s.Uncounted {
		t.Errorf("a third that adds more: %+v", s)
	}
}

func TestSpendingIsOfRequests(t *testing.T) {
	b := start(t, pa.New())
	b.ask(": node_attach2([],\"\")")
	if _, err := b.tool.Spent([]omis.Token{"n_1"}); err == nil {
		t.Error("a node has cost something")
	}
}

// TestClocksOfTimers checks that programs use the clock of their timer.
func TestClocksOfTimers(t *testing.T) {
	b, placer, _ := startPlacing(t)
	b.ask(`: pa_timer_create2("fast") pa_timer_create2("ordered") pa_timer_create() pa_timer_create2("cpu")`)
	for i, want := range []program.Clock{program.ClockFast, program.ClockOrdered, program.ClockOrdered, program.ClockCPU} {
		b.ask(fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_start([pa_t_%d])", 0x10+i, 1+i))
		b.ask(fmt.Sprintf(": csr_enable([c_%d])", 1+i))
		if got := placer.Programs()[i][0].Clock; got != want {
			t.Errorf("the program of timer %d uses the clock %d, want %d", 1+i, got, want)
		}
	}
	if got := b.ask(`: pa_timer_create2("sundial")`); !strings.Contains(got, "OMIS_PARAMETER_ERROR") || !strings.Contains(got, "is not a clock; the clocks are cpu, ") {
		t.Errorf("another clock: %s", got)
	}
}

// TestHistogramsOfTimers checks that programs fill a histogram only if their timer keeps one.
func TestHistogramsOfTimers(t *testing.T) {
	b, placer, _ := startPlacing(t)
	b.ask(`: pa_timer_create4("ordered",1,"histogram") pa_timer_create4("ordered",1,"sums")`)
	for i, want := range []bool{true, false} {
		b.ask(fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_%d])", 0x10+i, 1+i))
		b.ask(fmt.Sprintf(": csr_enable([c_%d])", 1+i))
		if p := placer.Programs()[i]; p.FillsHistogram() != want {
			t.Errorf("timer %d: %+v", 1+i, p)
		}
	}
}

// TestSpendingIsShared checks that requests at the same place together cost as much as one, because a thread
// is held or interrupted once for all of them, and that their shares are rough.
func TestSpendingIsShared(t *testing.T) {
	b, placer, p := startPlacing(t)
	placer.Costly = true // as uprobes are
	b.node.SetCost("fake", "kind", program.Cost{Count: 600, Time: 600})
	b.node.SetCost("trap", "ptrace", program.Cost{Count: 8000, Time: 8000})
	b.ask(": pa_counter_create() pa_counter_create()")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_2],1)")
	b.ask(": csr_enable([c_1])")
	p.Reach(11, 0x10, 100)
	if s := b.spent("c_1"); s.Inside != 600 || s.Rough {
		t.Errorf("alone: %+v", s)
	}
	b.ask(": csr_enable([c_2])")
	if one, other := b.spent("c_1"), b.spent("c_2"); one.Inside != 300 || other.Inside != 0 || !one.Rough || !other.Rough {
		t.Errorf("two programs: %+v, %+v", one, other)
	}
	b.ask(": csr_delete([c_1,c_2])")
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_2],1)")
	b.ask("thread_reached_addr([t_2],0x10) : pa_counter_add([pa_c_2],1)")
	b.ask(": csr_enable([c_3,c_4,c_5])")
	p.Reach(11, 0x10, 100)
	p.Reach(11, 0x10, 100)
	if s := b.spent("c_3"); s.Hits != 2 || s.Outside != 8000 || !s.Rough {
		t.Errorf("held for two: %+v", s)
	}
	if s := b.spent("c_3", "c_4", "c_5"); s.Outside != 16000 {
		t.Errorf("all together: %+v", s)
	}
}

// TestHeldTimesAreMarked checks that the placement of a request that times by trap warns that short times
// are imprecise.
func TestHeldTimesAreMarked(t *testing.T) {
	b, placer, _ := startPlacing(t)
	placer.Refuse = func(node.Watch) error { return &program.Refusal{Why: "no"} }
	region(b)
	b.runs("c_1", "trap", "those below 100 µs mean little")
	b.ask("thread_reached_addr([],0x40) : pa_counter_add([pa_c_1],1)")
	if x, err := b.tool.State("c_3"); err != nil || strings.Contains(x.Placement.Why, "mean little") {
		t.Errorf("a request that only counts: %v, %v", x.Placement, err)
	}
}
