package measure

import (
	"slices"
	"testing"
)

// TestCompare checks that a difference is explained by the callees that take more, the most expensive
// first, and by what the process does.
func TestCompare(t *testing.T) {
	from := &profile{calls: map[string]float64{"": 1, "hash": 2, "same": 1}, times: map[string]float64{"": 0.1, "hash": 0.02, "same": 0.01}}
	to := &profile{
		calls: map[string]float64{"": 1, "hash": 3, "same": 1, "log": 1}, times: map[string]float64{"": 0.2, "hash": 0.03, "same": 0.0101, "log": 0.08},
		system: 1, waited: 0.05,
	}
	want := []string{
		"log, which it calls 1 times (base: 0), takes +80 us",
		"hash, which it calls 3 times (base: 2), takes +10 us",
		"the process makes 1 system calls (base: 0)",
		"the process waits 50 us (base: 0 us)",
	}
	if got := compare(from, to); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !sameCalls(from, from) || sameCalls(from, to) || sameCalls(to, from) {
		t.Error("wrong comparison of calls")
	}
	if got := compare(from, from); len(got) > 0 {
		t.Errorf("equal programs: %q", got)
	}
}
