//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

var _ node.CPUTimer = (*Node)(nil)

// CPUTime: see node.CPUTimer.
func (*Node) CPUTime(p omis.ProcID, tid int) (int64, error) { return proc.RestingCPUTime(p.PID, tid) }
