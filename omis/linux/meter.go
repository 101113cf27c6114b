//go:build linux && amd64

package linux

import (
	"errors"

	"mirador/omis"
	"mirador/omis/host/perf"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// meters counts events of threads by the kernel's performance counters.
type meters struct {
	counters *perf.Counters
	reader   *proc.Reader
}

var _ node.Meters = (*meters)(nil)

// CheckMeter: see node.Meters.
func (*meters) CheckMeter(event string) error { return perf.Check(event) }

// OpenMeter: see node.Meters. The kernel knows threads by their numbers only, so OpenMeter checks
// afterwards that the number still belongs to the process.
func (m *meters) OpenMeter(p omis.ProcID, tid int, event node.MeterEvent) (node.Meter, error) {
	c, err := m.counters.Open(tid, event)
	if err != nil {
		return nil, err
	}
	if _, err := m.reader.ThreadInfo(p, tid, node.ThreadTotalTime); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
