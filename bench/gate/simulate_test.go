package gate

import (
	"math"
	"math/rand/v2"
	"testing"

	"mirador/cli/gate/verdict"
)

// TestSimulate simulates gates from starts without a change: ours pass, and fail with five percent more;
// the rules of the other tools raise more false alarms.
func TestSimulate(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	var starts []start
	for range 30 {
		base := 1 + 0.1*random.NormFloat64() // of the machine, common to both
		change := math.Expm1(0.004 * random.NormFloat64())
		starts = append(starts, start{base, base * (1 + change), change})
	}
	b := &bench{Options: Options{Gates: 300, Seed: 1}}
	if s := b.simulate(starts, 0.03, 0); s[verdict.Passed] < 0.98 || s[verdict.Failed] > 0 {
		t.Errorf("without a change: %v", s)
	}
	if s := b.simulate(starts, 0.03, 0.05); s[verdict.Failed] < 0.95 {
		t.Errorf("with a change: %v", s)
	}
	if s := b.simulate(nil, 0.03, 0); s[verdict.Inconclusive] != 1 {
		t.Errorf("without starts: %v", s)
	}
	base, head := split(draw(random, starts, 12, 0.5))
	for _, judge := range judges {
		if !judge.slower(base, head) {
			t.Errorf("%s does not find 50 %%", judge.name)
		}
		if judge.slower(head, base) {
			t.Errorf("%s reports that half the time is slower", judge.name)
		}
	}
}
