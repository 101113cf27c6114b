package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCalibratedAtStart starts a gateway, sends no request, and waits until it has measured
// what probes cost, or found the machine too busy for that. The gateway must end at once while
// it is still measuring the rest.
func TestCalibratedAtStart(t *testing.T) {
	s := startServe(t, os.Geteuid(), "--calibrate", "at-start")
	eventually(t, "the gateway has measured inline probes", func() bool {
		costs, err := os.ReadFile(filepath.Join(s.data(), "costs.json"))
		return err == nil && bytes.Contains(costs, []byte(`"inline"`)) ||
			strings.Contains(s.logged(), "too busy to measure well what probes cost: their cost is rough\" placement=inline")
	})
}
