//go:build linux && amd64

package peers

import (
	"strings"
	"testing"

	"mirador/bench/subject"
)

// TestEveryPeer checks each installed tool; a tool that is not installed must be reported
// as missing.
func TestEveryPeer(t *testing.T) {
	dir := t.TempDir()
	program, err := subject.Compile(t.Context(), "../reference", "subject", dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &Peers{Program: program, Dir: dir}
	p.Traced, p.Untraced = CompileTraced(t.Context(), "../reference", dir)
	for _, c := range p.Contenders() {
		for _, timed := range []bool{false, true} {
			task := subject.Task{Function: "moved", Timed: timed}
			t.Run(c.Name+", "+task.String(), func(t *testing.T) { probe(t, c, task) })
		}
	}
}

func probe(t *testing.T, c subject.Contender, task subject.Task) {
	if c.Suits != nil && c.Suits(task) != "" {
		return
	}
	s, err := c.Start(task)
	if why, missing := subject.WhyMissing(err); missing {
		t.Log(why)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	cost := leastCost(t, s)
	if cost[0] < cost[1]+cheapest {
		t.Errorf("a call takes %v ns, its twin %v: the function was not probed", cost[0], cost[1])
	}
	if task.Timed && s.Mean != nil {
		if mean, err := s.Mean(); err != nil || mean < cost[1]/2 {
			t.Errorf("the tool reports a mean of %v ns, %v; the function takes %v", mean, err, cost[1])
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// cheapest is the least that any tool adds to a call, in nanoseconds.
const cheapest = 10

// leastCost returns the least time of a call of the function, and of its twin. On a busy
// machine it repeats the measurement until the tool adds what any tool adds at least.
func leastCost(t *testing.T, s *subject.Standing) []float64 {
	const rounds, tries = 1000, 20
	var least []float64
	for range tries {
		cost, err := s.Target.Ask(2, "cost %s lb %d 3", s.Function, rounds)
		if err != nil {
			t.Fatal(err)
		}
		if least == nil {
			least = cost
		}
		least[0], least[1] = min(least[0], cost[0]), min(least[1], cost[1])
		if least[0] >= least[1]+cheapest {
			break
		}
	}
	return least
}

func TestMissingTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range (&Peers{Untraced: &subject.Missing{Why: "not compiled"}, Dir: t.TempDir()}).Contenders() {
		_, err := c.Start(subject.Task{Function: "moved", Timed: true})
		if why, missing := subject.WhyMissing(err); !missing || !strings.Contains(why, "not ") {
			t.Errorf("%s without its program: %v", c.Name, err)
		}
	}
}

func TestMeans(t *testing.T) {
	for name, mean := range map[string]func() (float64, error){
		"bpftrace": func() (float64, error) {
			return meanOfStats([]string{"", "@[812]: count 4, average 930, total 3720"})
		},
		"uftrace": func() (float64, error) {
			return meanOfReport("  Avg total   Min total   Max total  Function\n  =====\n    0.930 us    0.080 us    1.200 us  moved\n", "moved")
		},
		"gdb": func() (float64, error) { return meanOfPython([]string{"[Inferior 1 exited normally]", "mean 930.0"}) },
		"lttng": func() (float64, error) {
			return meanOfEvents("[17.000000100] (+?) host mirador_bench:exit: { cpu_id = 0 }, { }\n" +
				"[17.999999900] (+?) host mirador_bench:entry: { cpu_id = 0 }, { }\n[18.000000830] (+0.00000093) host mirador_bench:exit: { cpu_id = 0 }, { }\n")
		},
		"perf": func() (float64, error) {
			return meanOfRecords("g", " 17.999999900: g:entry: \n 18.000000830: g:exit__return: \n")
		},
	} {
		if got, err := mean(); err != nil || got != 930 {
			t.Errorf("%s: a mean of %v, %v, not 930", name, got, err)
		}
	}
	if _, err := meanOfStats([]string{"Attaching 3 probes..."}); err == nil {
		t.Error("a mean was found in a report without one")
	}
	if _, err := meanOfEvents(""); err == nil {
		t.Error("a mean was found in an empty trace")
	}
}
