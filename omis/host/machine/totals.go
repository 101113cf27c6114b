//go:build linux

package machine

import (
	"time"

	"mirador/omis"
)

// totals returns what OMIS does not define and metrics of MIR need: the load of the last minute,
// the memory available and the other memory in bytes, the bytes received and sent through all
// links except the loopback, and for how long some thread waited for a processor, a disk and
// memory (pressure stall information), in seconds.
func (m *Machine) totals() ([]omis.Value, error) {
	average, err := m.fs.LoadAvg()
	if err != nil {
		return nil, err
	}
	mem, err := m.fs.Meminfo()
	if err != nil {
		return nil, err
	}
	available, used := none, none
	if mem.MemAvailableBytes != nil && mem.MemTotalBytes != nil {
		available, used = omis.Uint(*mem.MemAvailableBytes), omis.Uint(*mem.MemTotalBytes-*mem.MemAvailableBytes)
	}
	received, sent, err := m.networkBytes()
	return []omis.Value{
		omis.Float(average.Load1), available, used, omis.Uint(received), omis.Uint(sent),
		m.pressure("cpu"), m.pressure("io"), m.pressure("memory"),
	}, err
}

// networkBytes adds up the bytes of all links except the loopback.
func (m *Machine) networkBytes() (received, sent uint64, err error) {
	links, err := m.fs.NetDev()
	for name, l := range links {
		if name != "lo" {
			received, sent = received+l.RxBytes, sent+l.TxBytes
		}
	}
	return received, sent, err
}

// pressure returns the time in which some thread waited for a resource.
func (m *Machine) pressure(resource string) omis.Value {
	p, err := m.fs.PSIStatsForResource(resource)
	if err != nil || p.Some == nil {
		return none // the kernel was built or started without it
	}
	return omis.Seconds(p.Some.Total * uint64(time.Microsecond))
}
