package probes

import (
	"slices"
	"sync"
	"time"

	"mirador/mir"
	"mirador/omis"
)

// spent returns what the requests of a probe have cost so far. ok is false if that is unknown,
// as for a probe without a region.
func (p *Probe) spent(w *installed) (s omis.Spending, ok bool) {
	if len(w.handles.Requests) == 0 {
		return s, false
	}
	s, err := p.app.tool.connected().Spent(w.handles.Requests)
	return s, err == nil
}

// cost returns what the probe has cost and costs now, nil if that is unknown.
func (p *Probe) cost(w *installed, budget float64) *mir.Cost {
	if state, _ := p.now(); state == Active {
		p.meter.read(p.spent(w))
	}
	c := p.meter.cost()
	if c == nil {
		return nil
	}
	c.Budget = mir.Rounded(budget, 8)
	if !c.Rough && !w.priced() {
		p.app.place(w) // its placements have been calibrated since
	}
	c.Rough = c.Rough || c.Share > omis.PreciseShare
	return c
}

// priced reports whether the recorded costs of the placements were measured.
func (w *installed) priced() bool {
	all := w.placements.Load()
	return all == nil || !slices.ContainsFunc(*all, func(p omis.Placement) bool { return !p.Measured })
}

// meter computes the cost of a probe from its spending at different times. Its methods may be
// called from any goroutine.
type meter struct {
	mu    sync.Mutex
	known bool
	first reading // when the probe was activated
	last  reading // when it was read last
	now   window  // the time up to last
}

// reading is the spending of a probe at one time.
type reading struct {
	omis.Spending
	at time.Time
}

// window is the spending of a probe during some time.
type window struct {
	omis.Spending
	took time.Duration
}

// leastWeighed is the least time of its processes, in nanoseconds, for which the share of a
// probe means something.
const leastWeighed = 10e6

// tells reports whether the window is long enough to predict the cost at other times.
func (w window) tells() bool { return w.took >= shortest/2 && w.CPU+w.Outside >= leastWeighed }

// shortest is the least time between two readings.
const shortest = 100 * time.Millisecond

// begin starts the measurement when the probe is activated.
func (m *meter) begin(s omis.Spending, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.now = ok, window{}
	m.first = reading{s, time.Now()}
	m.last = m.first
}

// read takes a reading and returns the latest window. The first window is returned even if it is
// short.
func (m *meter) read(s omis.Spending, ok bool) window {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok || !m.known {
		return window{}
	}
	now := reading{s, time.Now()}
	if took := now.at.Sub(m.last.at); took >= shortest || m.last == m.first {
		m.now = window{s.Since(m.last.Spending), took}
		if took >= shortest {
			m.last = now
		}
	}
	return m.now
}

// end takes the last reading of a probe that is being deactivated. If the time since the
// previous reading is too short, the previous window remains.
func (m *meter) end(s omis.Spending, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok || !m.known {
		return
	}
	if w := (window{s.Since(m.last.Spending), time.Since(m.last.at)}); w.tells() || !m.now.tells() {
		m.now = w
	}
	m.last = reading{s, time.Now()}
}

// lately replaces the latest window.
func (m *meter) lately(w window) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = w
}

// cost returns the cost so far and in the latest window, nil if it is unknown.
func (m *meter) cost() *mir.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return nil
	}
	all := m.last.Since(m.first.Spending)
	if m.last == m.first {
		all = m.now.Spending
	}
	c := &mir.Cost{
		Hits: int64(all.Hits), Lost: int64(all.Lost), PerHit: mir.Rounded(all.PerHit(), 1), Rough: all.Rough || all.Uncounted, Dilation: 1,
	}
	if m.now.tells() {
		c.Share, c.Dilation = mir.Rounded(m.now.Share(), 8), mir.Rounded(m.now.Dilation(), 6)
		c.Rate = mir.Rounded(float64(m.now.Hits)/m.now.took.Seconds(), 1)
	}
	return c
}
