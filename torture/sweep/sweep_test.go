//go:build linux && amd64

package sweep

import (
	"os"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux/warden"
)

// wardenEnv makes the test binary a warden.
const wardenEnv = "MIRADOR_TEST_WARDEN"

func TestMain(m *testing.M) {
	if os.Getenv(wardenEnv) != "" {
		if err := warden.Run(os.Stdin); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestRun sweeps a program in every way.
func TestRun(t *testing.T) {
	for _, way := range Ways {
		t.Run(way, func(t *testing.T) {
			var progress strings.Builder
			seed := uint64(time.Now().UnixNano() % 1e6)
			p := Plan{Warden: []string{"/usr/bin/env", wardenEnv + "=1", os.Args[0]}, Ways: []string{way}, Places: 1, Time: time.Minute, Seed: seed, Progress: &progress}
			outcomes, err := p.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			Print(&progress, outcomes)
			t.Logf("seed %d\n%s", seed, &progress)
			if o := outcomes[0]; len(o.Wrong) > 0 || o.Victims != 1 || o.Rounds != stride || o.Counted == 0 {
				t.Error("see above")
			}
		})
	}
}
