package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCalibratedAtStart starts a gateway, sends no request, and waits until it has measured
// what probes cost. The gateway must end at once while it is still measuring the rest.
func TestCalibratedAtStart(t *testing.T) {
	s := startServe(t, os.Geteuid(), "--calibrate", "at-start")
	eventually(t, "the gateway knows what inline probes cost", func() bool {
		costs, err := os.ReadFile(filepath.Join(s.data(), "costs.json"))
		return err == nil && bytes.Contains(costs, []byte(`"inline"`))
	})
}
