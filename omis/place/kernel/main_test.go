//go:build linux && amd64

package kernel_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isMonitor() || isDebugger() {
		return
	}
	goleak.VerifyTestMain(m)
}
