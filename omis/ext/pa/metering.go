package pa

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// meterPrefix begins the names of clocks that show what the kernel's performance counters count.
const meterPrefix = "perf:"

// metering counts an event in each thread that executes the actions of a timer, or in those of its
// group, from the first of these actions on. The monitor reads it while it holds the thread.
type metering struct {
	event string

	mu   sync.Mutex
	open map[owner]node.Meter
}

// setClock sets the clock of a timer, by its value and its name.
func (t *timer) setClock(clock program.Clock, name string) {
	t.clock = clock
	if event, ok := strings.CutPrefix(name, meterPrefix); ok {
		t.metering = &metering{event: event, open: make(map[owner]node.Meter)}
	}
}

// reads returns what was counted in a thread.
func (m *metering) reads(e *service.Occurrence, o owner) (int64, error) {
	if e.Meter == nil {
		return 0, omis.Errorf(omis.UnsupportedService, "the event belongs to no thread in which %s could be counted", m.event)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[o] == nil {
		m.closeEnded(e)
		meter, err := e.Meter(o.thread, m.event)
		if err != nil {
			return 0, err
		}
		m.open[o] = meter
	}
	r, err := m.open[o].Read()
	return int64(r.Count), err
}

// closeEnded closes the meters of threads of the process that have ended. The caller holds mu.
func (m *metering) closeEnded(e *service.Occurrence) {
	live := e.Threads(e.Proc)
	for o, meter := range m.open {
		if o.proc == e.Proc && !slices.Contains(live, o.thread) {
			_ = meter.Close() // nothing reads it any more
			delete(m.open, o)
		}
	}
}

// Close closes all meters.
func (m *metering) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, meter := range m.open {
		errs = append(errs, meter.Close())
	}
	clear(m.open)
	return errors.Join(errs...)
}
