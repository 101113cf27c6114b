package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"mirador/mir"
	"mirador/probes"
)

// GET /probes marks a probe if the cost of one of its placements is rough.
func TestRoughPlacementsAreMarked(t *testing.T) {
	inline := mir.Placement{Where: "inline", Cost: 3, Measured: true}
	trap := mir.Placement{Where: "trap", Cost: 14000, Measured: true, Rough: true}
	for _, c := range []struct {
		placements []mir.Placement
		rough      bool
	}{{[]mir.Placement{inline}, false}, {[]mir.Placement{inline, trap}, true}} {
		answer, err := json.Marshal(describeProbe(probes.Status{Placements: c.placements}))
		if err != nil || strings.Contains(string(answer), `"rough":true`) != c.rough {
			t.Errorf("%+v: %s, %v", c.placements, answer, err)
		}
	}
}
