package measure

import (
	"math"
	"slices"
	"testing"

	"mirador/mir"
)

// TestSlowest describes the slowest round: the stacks at its end, and the threads by their names.
func TestSlowest(t *testing.T) {
	found := map[string]mir.Entity{
		"t_1": {Name: "a", Stack: []string{"price", "work"}}, "t_2": {Name: "b", Stack: []string{"main"}}, "t_3": {Name: "b", Stack: []string{"main"}},
	}
	calls := []call{{thread: "t_1", ns: 2000}, {thread: "t_2", ns: 1000}, {thread: "t_1", ns: 2000}, {thread: "t_3", ns: 1000}, {thread: "t_1", ns: 4000}}
	r := &Runner{slowest: []slowest{{
		ratio: math.Log(1.5), took: 0.002, stacks: stacksOf(found),
		calls: [2]map[string]threads{{"a": {0.001}}, byName(calls, found)},
	}}}
	want := []string{
		"(2 us in each call, +50.0 %) ended with a in price < work; b in main",
		"the thread a makes 60 % of the calls, 2 us each (base: 1 us)", "the thread b makes 40 % of the calls, 1 us each",
	}
	if got := r.Slowest(0); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := r.Slowest(1); got != nil {
		t.Errorf("a limit without a slow round: %q", got)
	}
}
