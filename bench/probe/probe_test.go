//go:build linux && amd64

package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

func opened(t *testing.T) *Bench {
	t.Helper()
	b, err := New(t.Context(), Options{Sources: "../reference", Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestOursAndReferences checks that each placement is measured where it runs, that it
// costs something, and that it reports nearly the true duration of a long function.
func TestOursAndReferences(t *testing.T) {
	b := opened(t)
	for _, c := range append(b.ours(), b.references()[0]) {
		t.Run(c.Name, func(t *testing.T) {
			task := countPush
			if suits(c, task) != "" {
				task = timePush
			}
			got, err := b.cost(task, []subject.Contender{c})
			if err != nil {
				t.Fatal(err)
			}
			if why := got.why[c.Name]; why != "" {
				t.Fatal(why)
			}
			const floor, noise = 100, -20 // nanoseconds
			least := got.added[c.Name][independent].Least
			if least < noise || !strings.HasPrefix(c.Name, inCode) && least < floor {
				t.Errorf("the probe adds %v ns", least)
			}
			const length = 200 * time.Microsecond
			row, err := b.truth(c, length)
			if err != nil {
				t.Fatal(err)
			}
			if row.Reference == nil || row.Reference.Least <= 0 {
				t.Fatalf("the true duration is %+v", row.Reference)
			}
			if row.Ours.Least < row.Reference.Least/2 {
				t.Errorf("the probe reports %+v for a function that takes %+v", row.Ours, *row.Reference)
			}
		})
	}
	t.Run(twoReadings, func(t *testing.T) { reads(t, b) })
}

// reads measures what two readings of a clock cost, the least that timing can cost. They
// report no duration.
func reads(t *testing.T, b *Bench) {
	t.Helper()
	c := b.reading()
	got, err := b.cost(timePush, []subject.Contender{c})
	if err != nil || len(got.added[c.Name]) != len(modes) || got.why[c.Name] != "" {
		t.Errorf("the readings add %+v (%v)", got, err)
	}
	if row, err := b.truth(c, usual); err != nil || row.Why == "" {
		t.Errorf("the readings report the duration %+v (%v)", row, err)
	}
}

func TestCountingSystemCalls(t *testing.T) {
	b := opened(t)
	for try := 1; ; try++ {
		table, err := b.Syscalls()
		if err != nil {
			t.Fatal(err)
		}
		var nothing []string
		for _, row := range table.Rows {
			if row.Why == "" && row.Ours.Least <= 0 {
				nothing = append(nothing, fmt.Sprintf("%s adds %v ns", row.What, row.Ours.Least))
			}
		}
		switch {
		case len(nothing) == 0:
			return
		case try == 10: // on a busy machine the difference of two times may be negative
			t.Fatal(nothing)
		}
	}
}

// TestRefusal checks that what a placement refuses is not measured in another placement.
func TestRefusal(t *testing.T) {
	b := opened(t)
	for _, m := range b.monitors {
		if m.placement != inKernel {
			continue
		}
		m.placement = "nowhere"
		_, err := m.start(b.program, countPush, ordered)
		if why, missing := subject.WhyMissing(err); !missing || why == "" {
			t.Errorf("the contender is missing because of %q, %v", why, err)
		}
	}
}

func TestPairings(t *testing.T) {
	list := append(ownPairings(), peerPairings()...)
	tasks := tasksOf(list)
	if len(tasks) != 5 || tasks[0] != countPush {
		t.Errorf("the tasks are %v", tasks)
	}
	known := map[string]bool{"": true, bareEBPF: true, bareReturning: true, inCodeFast: true, inCodeSome: true, twoReadings: true}
	for _, name := range placements {
		known[name] = true
	}
	b := &Bench{}
	for _, c := range b.peers.Contenders() {
		known[c.Name] = true
	}
	for _, c := range b.peers.EachHit() {
		known[c.Name] = true
	}
	b.monitors = []*rig{{placement: inCode}, {placement: inKernel}, {placement: trap}}
	for _, c := range b.keeping() {
		known[c.Name] = true
	}
	for _, p := range append(list, keepingPairings()...) {
		if !known[p.ours] || !known[p.reference] {
			t.Errorf("no contender is called %q or %q", p.ours, p.reference)
		}
	}
	some := wanted(list, countMov, []subject.Contender{{Name: "gdb, fast tracepoint"}, {Name: "uftrace, dynamic"}})
	if len(some) != 1 || some[0].Name != "gdb, fast tracepoint" {
		t.Errorf("the contenders at a mov are %v", some)
	}
}

func TestRows(t *testing.T) {
	c := costs{countPush, map[string]figures{
		inCode: {dependent: {Least: 0, Median: 0.5}, independent: {Least: 1.8, Median: 2}},
		"perf": {dependent: {Least: 800, Median: 810}, independent: {Least: 820, Median: 830}},
	}, map[string]string{"bpftrace": "it is not installed"}}
	var table report.Table
	c.rows(&table, pairing{countPush, inCode, "perf", none, report.Cheaper(200)})
	c.rows(&table, pairing{countPush, inCode, "bpftrace", none, report.Cheaper(200)})
	if len(table.Rows) != 4 {
		t.Fatalf("there are %d rows", len(table.Rows))
	}
	if r := table.Rows[1]; r.What != "inline, count at a push, TB" || r.Reference.Least != 820 || r.Why != "" {
		t.Errorf("the row beside perf is %+v", r)
	}
	if r := table.Rows[3]; r.Reference != nil || r.Why != "it is not installed" || r.Ours.Least != 1.8 {
		t.Errorf("the row beside a missing tool is %+v", r)
	}
}

func TestWork(t *testing.T) {
	b := &Bench{rate: 0.95}
	for length, want := range map[time.Duration]int{usual: 48, time.Microsecond: 1053, 0: 1} {
		if got := b.work(length); got != want {
			t.Errorf("%v are %d rounds, not %d", length, got, want)
		}
	}
	if title(countLanded) == "" || !strings.Contains(title(timePush), "push") {
		t.Error("a task has no title")
	}
}
