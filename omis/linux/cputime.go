//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/host/proc"
)

var _ omis.CPUTimer = (*Node)(nil)

// CPUTime: see omis.CPUTimer.
func (*Node) CPUTime(p omis.ProcID, tid int) (int64, error) { return proc.RestingCPUTime(p.PID, tid) }
