package probes

import (
	"slices"
	"sync"
	"time"

	"mirador/mir"
	"mirador/omis"
)

// spent is what the requests of a probe have cost so far; ok is false where that is not
// known, as of a probe without a region.
func (p *Probe) spent(w *installed) (s omis.Spending, ok bool) {
	if len(w.handles.Requests) == 0 {
		return s, false
	}
	s, err := p.app.tool.Spent(w.handles.Requests)
	return s, err == nil
}

// cost is what the probe has cost, and costs now; nil: not known.
func (p *Probe) cost(w *installed, budget float64) *mir.Cost {
	if state, _ := p.now(); state == Active {
		p.meter.read(p.spent(w))
	}
	c := p.meter.cost()
	if c == nil {
		return nil
	}
	c.Budget = budget
	if !c.Rough && !w.priced() {
		p.app.place(w) // its placements have been calibrated since
	}
	c.Rough = c.Rough || c.Share > omis.PreciseShare
	return c
}

// priced tells whether what is noted of the placements was measured.
func (w *installed) priced() bool {
	all := w.placements.Load()
	return all == nil || !slices.ContainsFunc(*all, func(p mir.Placement) bool { return !p.Measured })
}

// meter tells what a probe costs from what it has cost at different times. Its methods
// may be called from any goroutine.
type meter struct {
	mu    sync.Mutex
	known bool
	first reading // when the probe was activated
	last  reading // when it was read last
	now   window  // the time before that
}

// reading is what a probe had cost at a time.
type reading struct {
	omis.Spending
	at time.Time
}

// window is what a probe has cost in some time.
type window struct {
	omis.Spending
	took time.Duration
}

// leastWeighed is how long processes must have run for a share of that to mean
// something, in nanoseconds.
const leastWeighed = 10e6

// tells whether what was spent in the window says something about other times.
func (w window) tells() bool { return w.took >= shortest/2 && w.CPU+w.Outside >= leastWeighed }

// shortest is how long a probe is watched at least before what it costs is said anew.
const shortest = 100 * time.Millisecond

// begin notes that the probe begins to cost something.
func (m *meter) begin(s omis.Spending, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.now = ok, window{}
	m.first = reading{s, time.Now()}
	m.last = m.first
}

// read notes what the probe has cost so far. Of the first window it says at once what
// there is to say.
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

// end notes what the probe has cost in the end. What it cost lately is what it did before
// it was ended, and not in the instants between.
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

// lately has the meter say that this is what the probe cost lately.
func (m *meter) lately(w window) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = w
}

// cost is what there is to say.
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
		Hits: int64(all.Hits), Lost: int64(all.Lost), PerHit: all.PerHit(), Rough: all.Rough || all.Uncounted, Dilation: 1,
	}
	if m.now.tells() {
		c.Share, c.Dilation, c.Rate = m.now.Share(), m.now.Dilation(), float64(m.now.Hits)/m.now.took.Seconds()
	}
	return c
}
