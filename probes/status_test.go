package probes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/probes"
)

// TestRoughPlacementsAreMarked checks that GET /probes marks a probe if the cost of one of its
// placements is rough.
func TestRoughPlacementsAreMarked(t *testing.T) {
	inline := omis.Placement{Name: "inline", Cost: 3, Measured: true}
	trap := omis.Placement{Name: omis.Trap, Cost: 14000, Measured: true}
	for _, c := range []struct {
		placements []omis.Placement
		rough      bool
	}{{[]omis.Placement{inline}, false}, {[]omis.Placement{inline, trap}, true}} {
		answer, err := json.Marshal(probes.Status{Placements: c.placements})
		if err != nil || strings.Contains(string(answer), `"rough":true`) != c.rough {
			t.Errorf("%+v: %s, %v", c.placements, answer, err)
		}
	}
}
