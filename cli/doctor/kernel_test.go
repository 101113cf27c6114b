package doctor

import (
	"errors"
	"strings"
	"testing"

	"mirador/omis/place/clock"
)

// TestClockFinding checks that the row about code in programs names the clock and why it was
// chosen, or the condition that is missing.
func TestClockFinding(t *testing.T) {
	for _, try := range []struct {
		clock clock.Clock
		err   error
		state State
		why   []string
	}{
		{clock.Clock{Kind: clock.Counter, Why: "the kernel's clock is tsc"}, nil, OK, []string{"time stamp counter", "is tsc"}},
		{clock.Clock{Kind: clock.Page, Why: "the kernel's clock is kvm-clock"}, nil, OK, []string{"hypervisor's clock page", "kvm-clock"}},
		{clock.Clock{Kind: clock.Function, Why: "the vDSO reads hyperv"}, nil, OK, []string{"clock_gettime", "hyperv"}},
		{clock.Clock{}, errors.New("the kernel's clock is hpet"), Limited, []string{"hpet"}},
	} {
		found := clockFinding(try.clock, try.err)
		for _, why := range try.why {
			if found.state != try.state || !strings.Contains(found.why, why) || (found.do == "") != (try.err == nil) {
				t.Errorf("%+v, want %q in it", found, why)
			}
		}
	}
}

// TestAdvice checks that root is not advised to run the gateway as root.
func TestAdvice(t *testing.T) {
	if got := adviceTo(1000, "CAP_BPF"); !strings.Contains(got, "as root, or with CAP_BPF") {
		t.Error(got)
	}
	if got := adviceTo(0, "CAP_BPF"); strings.Contains(got, "root") || !strings.Contains(got, "CAP_BPF") {
		t.Error(got)
	}
	for _, c := range checks {
		if c.name == "cost of a probe's hit" || c.name == "criu" {
			continue // these take long, and give the same advice as others
		}
		if found := c.run(t.Context()); adviceTo(0, "") == advice("") && strings.Contains(found.do, "root") {
			t.Errorf("%s: %s", c.name, found.do)
		}
	}
}
