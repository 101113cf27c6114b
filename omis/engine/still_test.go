package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
)

// costly is a node that measures each placement when that is asked for first. Whoever asks
// waits for it.
type costly struct {
	*fake.Placing
	measured sync.Map // of *sync.Once, by placements
	measure  func()
}

func (c *costly) Calibrate(placement string) {
	once, _ := c.measured.LoadOrStore(placement, new(sync.Once))
	once.(*sync.Once).Do(c.measure)
}

// moving is a monitor with two placements, whose far one takes what the near one refuses:
// // what is beyond 0x100; beyond 0x200 there is none. It notes whether the process is
// suspended when something takes long.
type moving struct {
	*bench
	proc       *fake.Process
	held, runs atomic.Int64 // watches that began while it was suspended, and while it ran
	waits      atomic.Bool  // for it to run, before a watch begins
}

func startMoving(t *testing.T) *moving {
	n := fake.New("here")
	pl := fake.NewPlacing(n, "near", "far")
	pl.Places[0].Refuse, pl.Places[1].Refuse = refuseFrom(0x100), refuseFrom(0x200)
	m := &moving{}
	suspended := func() bool { return m.proc != nil && m.proc.Suspended(11) > 0 }
	// A move that waited for this would be over only when it has taken too long, and the
	// process goes on.
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
	m.bench = startOver(t, []node.Node{machine}, []*fake.Node{n}, pa.New())
	m.proc = n.Add(1, nil, 11, 12)
	m.ask(`: proc_attach3([],1,"")`)
	return m
}

// moves sees how many watches begin while a request is executed: with the process
// suspended, and running.
func (m *moving) moves(request string, held, runs int64) {
	m.Helper()
	m.held.Store(0)
	m.runs.Store(0)
	m.ask(request)
	if n := m.proc.Suspended(11); n != 0 {
		m.Errorf("after %s it is suspended %d times", request, n)
	}
	if h, r := m.held.Load(), m.runs.Load(); h != held || r != runs {
		m.Errorf("%s: %d watches while it was suspended, %d others; want %d and %d", request, h, r, held, runs)
	}
}

// timing has a timer started at 0x10 and stopped at 0x20.
func (m *moving) timing() {
	m.Helper()
	m.ask(": pa_timer_create()")
	m.ask("thread_reached_addr([],0x10) : pa_timer_start([pa_t_1])")
	m.ask("thread_reached_addr([],0x20) : pa_timer_stop([pa_t_1])")
	m.ask(": csr_enable([c_1,c_2])")
	m.bench.runs("c_1", "near", "")
	m.proc.Reach(11, 0x10, 100)
}

// While requests move to the monitor, or to another placement, nobody comes by.
func TestNobodyComesByWhileRequestsMove(t *testing.T) {
	t.Run("for a breakpoint", func(t *testing.T) {
		m := startMoving(t)
		m.timing()
		m.ask("thread_reached_addr([],0x10) : print([])")
		m.moves(": csr_enable([c_3])", 2, 0)
		m.bench.runs("c_2", "trap", "c_1, which opens or closes the same intervals")
	})
	t.Run("with another of the same timer", func(t *testing.T) {
		m := startMoving(t)
		m.timing()
		m.ask("thread_reached_addr([],0x130) : pa_timer_stop([pa_t_1])")
		m.moves(": csr_enable([c_3])", 3, 0)
		m.bench.runs("c_1", "far", "")
		m.ask("thread_reached_addr([],0x230) : pa_timer_stop([pa_t_1])")
		m.moves(": csr_enable([c_4])", 4, 0)
		m.bench.runs("c_1", "trap", "")
	})
	t.Run("for long", func(t *testing.T) {
		m := startMoving(t)
		m.timing()
		m.ask("thread_reached_addr([],0x10) : print([])")
		m.waits.Store(true)
		m.moves(": csr_enable([c_3])", 0, 2)
	})
}

// What a thread runs late of a program that was taken away counts, and for nobody else.
func TestProgramsThatLinger(t *testing.T) {
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
		t.Errorf("%d stores while it lingers", placer.Stores())
	}
	placer.Linger(false)
	eventually(t, func() bool { return placer.Stores() == 0 })
	b.counts("1,[p_1,t_1,3]")
}
