package engine_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/program"
)

// costly is a node whose first call of Calibrate for a placement takes as long as measure.
type costly struct {
	*fake.Placing
	measured sync.Map // *sync.Once by placement
	measure  func()
}

func (c *costly) Calibrate(placement string) {
	once, _ := c.measured.LoadOrStore(placement, new(sync.Once))
	once.(*sync.Once).Do(c.measure)
}

// moving is an engine with the two placements of startPlacements. It counts the watches that are set
// while the process is suspended, and while it runs.
type moving struct {
	*bench
	proc       *fake.Process
	held, runs atomic.Int64 // watches that were set while the process was suspended, and while it ran
	waits      atomic.Bool  // setting a watch waits until the process runs
}

func startMoving(t *testing.T) *moving {
	n := fake.New("here")
	pl := fake.NewPlacing(n, "near", "far")
	pl.Places[0].Refuse, pl.Places[1].Refuse = refuseFrom(0x100), refuseFrom(0x200)
	m := &moving{}
	suspended := func() bool { return m.proc != nil && m.proc.Suspended(11) > 0 }
	// If a move waited for this measurement, it would end only when the engine resumes the process
	// because the move takes too long.
	machine := &costly{Placing: pl, measure: func() {
		for suspended() {
			time.Sleep(time.Millisecond)
		}
	}}
	n.Script = func(method string) error {
		if method != "Watch" {
			return nil
		}
		if m.waits.Load() {
			eventually(t, func() bool { return !suspended() })
		}
		if suspended() {
			m.held.Add(1)
		} else {
			m.runs.Add(1)
		}
		return nil
	}
	m.bench = startOver(t, []program.Machine{machine}, []*fake.Node{n}, pa.New())
	m.proc = n.Add(1, nil, 11, 12)
	m.ask(`: proc_attach3([],1,"")`)
	return m
}

// moves checks the numbers of watches that are set during a request while the process is suspended, and
// while it runs.
func (m *moving) moves(request string, held, runs int64) {
	m.Helper()
	m.held.Store(0)
	m.runs.Store(0)
	m.ask(request)
	if n := m.proc.Suspended(11); n != 0 {
		m.Errorf("after %s the suspend count is %d", request, n)
	}
	if h, r := m.held.Load(), m.runs.Load(); h != held || r != runs {
		m.Errorf("%s: %d watches while the process was suspended, %d others; want %d and %d", request, h, r, held, runs)
	}
}

// misses checks which of the requests may have missed events a moment ago.
func (m *moving) misses(want []omis.Token) {
	m.Helper()
	for _, c := range []omis.Token{"c_1", "c_2", "c_3"} {
		x, err := m.tool.State(c)
		if may := !x.Missed.IsZero(); err != nil || may != slices.Contains(want, c) || may && time.Since(x.Missed) > 10*time.Second {
			m.Errorf("%s may have missed events at %v, %v", c, x.Missed, err)
		}
	}
}

// timing enables requests that start a timer at 0x10 and stop it at 0x20.
func (m *moving) timing() {
	m.Helper()
	m.must(": pa_timer_create()")
	timeRegion(m.bench)
	m.bench.runs("c_1", "near", "")
	m.proc.Reach(11, 0x10, 100)
}

// TestSuspendedWhileRequestsMove checks that the process is suspended while requests move to trap or to
// another placement, unless that takes too long.
func TestSuspendedWhileRequestsMove(t *testing.T) {
	t.Run("for a breakpoint", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := startMoving(t)
			m.timing()
			m.ask("thread_reached_addr([],0x10) : print([])")
			m.moves(": csr_enable([c_3])", 2, 0)
			m.bench.runs("c_2", "trap", "c_1, which opens or closes the same intervals")
			m.misses(nil)
		})
	})
	t.Run("with another request of the timer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := startMoving(t)
			m.timing()
			m.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
			m.moves(": csr_enable([c_3])", 3, 0)
			m.bench.runs("c_1", "far", "")
			m.ask("thread_reached_addr([],0x230) : pa_timer_stop([pa_t_1])")
			m.moves(": csr_enable([c_4])", 4, 0)
			m.bench.runs("c_1", "trap", "")
		})
	})
	t.Run("for too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := startMoving(t)
			m.timing()
			m.ask("thread_reached_addr([],0x10) : print([])")
			m.waits.Store(true)
			m.moves(": csr_enable([c_3])", 0, 2)
			m.misses([]omis.Token{"c_1", "c_2"})
		})
	})
}

// TestProgramsThatLinger checks that hits of a removed program that a thread still runs are counted once.
func TestProgramsThatLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, placer, p := startPlacing(t)
		b.ask(": pa_counter_create()")
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask("thread_reached_addr([],0x10) : print([])")
		b.ask(": csr_enable([c_1])")
		p.Reach(11, 0x10, 0)
		placer.Linger(true)
		b.ask(": csr_enable([c_2])")
		b.runs("c_1", "trap", "")
		placer.RunLate(11)
		b.counts("1,[p_1,t_1,2]")
		p.Reach(11, 0x10, 0)
		b.counts("1,[p_1,t_1,3]")
		if placer.Stores() != 1 {
			t.Errorf("%d stores while the program lingers, want 1", placer.Stores())
		}
		placer.Linger(false)
		eventually(t, func() bool { return placer.Stores() == 0 })
		b.counts("1,[p_1,t_1,3]")
	})
}
