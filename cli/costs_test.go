package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// knownCosts is the content of the file of costs of the gateway that knows most costs so
// far. Gateways of later tests begin with it, because a calibration takes about a second.
var knownCosts struct {
	sync.Mutex
	content []byte
}

func (s *served) costs() string { return filepath.Join(s.data(), "costs.json") }

// sharesCosts reports whether the gateway holds threads in the usual way, on which costs depend, and the
// test is not about calibration.
func (s *served) sharesCosts() bool {
	return !slices.Contains(s.more, "--hold") && !slices.Contains(s.more, "--calibrate")
}

// lendCosts writes the known costs to the data directory, unless it has a file of costs.
func (s *served) lendCosts(t *testing.T) {
	t.Helper()
	knownCosts.Lock()
	defer knownCosts.Unlock()
	if _, err := os.Stat(s.costs()); err == nil || !s.sharesCosts() || knownCosts.content == nil {
		return
	}
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.costs(), knownCosts.content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.data(), s.costs()} {
		if err := os.Chown(path, s.uid, s.uid); err != nil {
			t.Fatal(err)
		}
	}
}

// collectCosts keeps the costs that the gateway knows, if they are of more placements.
func (s *served) collectCosts(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(s.costs())
	if err != nil || !s.sharesCosts() {
		return // the gateway has not calibrated
	}
	const perCost = `": {` // each placement and each kind begins an object
	knownCosts.Lock()
	defer knownCosts.Unlock()
	if bytes.Count(content, []byte(perCost)) > bytes.Count(knownCosts.content, []byte(perCost)) {
		knownCosts.content = content
	}
}
