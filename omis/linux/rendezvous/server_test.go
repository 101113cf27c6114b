//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mirador/omis/linux/subject"
)

// serve plants jumps and serves them until the test ends.
func serve(t *testing.T, p *party, handler func(*Hit), addrs ...uint64) (*Site, *Server) {
	t.Helper()
	site, err := plant(p.path, p.PID, forEver, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(site, 0, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		site.Forget()
	})
	return site, s
}

func TestHits(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "4", "5000")
	p := start(t, path, "4", "5000")
	hits := 0
	_, s := serve(t, p, func(h *Hit) {
		hits++
		if h.Addr != p.work || h.Regs[RIP] != p.work || h.TID == 0 {
			t.Errorf("hit %+v", h)
		}
	}, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Close()
	if hits != 20000 || s.Stats() != (Stats{Served: 20000}) {
		t.Errorf("%d hits, %+v", hits, s.Stats())
	}
}

func TestRegistersAreKept(t *testing.T) {
	path := build(t)
	for _, mode := range []string{"check", "middle"} {
		p := start(t, path, "1", "1000", mode)
		var hits atomic.Int32
		serve(t, p, func(h *Hit) {
			hits.Add(1)
			if h.Regs[RDI] != 5 || h.Regs[RBX] != 0x1111 || h.Regs[R15] != 0x6666 || h.Regs[RSI] != 0xaaaa {
				t.Errorf("registers %#x", *h.Regs)
			}
			if mode == "middle" && h.Regs[RFlags]&1 == 0 {
				t.Error("no carry flag")
			}
		}, map[string]uint64{"check": p.plain, "middle": p.middle}[mode])
		p.Begin()
		if got := p.Finish(); got != "kept" || hits.Load() != 1000 {
			t.Errorf("%s: %s, %d hits", mode, got, hits.Load())
		}
	}
}

func TestChangedRegistersArrive(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "1", "77", "value")
	p := start(t, path, "1", "5", "value")
	serve(t, p, func(h *Hit) { h.Regs[RDI] = 77 }, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestGoto returns from a function that was never executed, by changing registers.
func TestGoto(t *testing.T) {
	p := start(t, build(t), "1", "5", "value")
	site, err := plant(p.path, p.PID, forEver, p.work)
	if err != nil {
		t.Fatal(err)
	}
	defer site.Forget()
	s, err := Serve(site, 0, func(h *Hit) {
		h.Regs[RAX], h.Regs[RIP] = 0x1234, p.plain+4 // its ret, after a nop
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.Begin()
	if got := p.Finish(); got != "value 1234" {
		t.Error(got)
	}
}

// TestMoreThreadsThanSlots checks that threads without a slot wait for one.
func TestMoreThreadsThanSlots(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "100", "200")
	p := start(t, path, "100", "200")
	var s *Server
	_, s = serve(t, p, func(h *Hit) {
		release := h.Hold() // so that slots fill up
		var later func()
		later = func() {
			if s.Stats().Full == 0 {
				time.AfterFunc(time.Millisecond, later)
				return
			}
			release()
		}
		time.AfterFunc(time.Millisecond, later)
	}, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	stats := s.Stats()
	if stats.Full == 0 || stats.Served != 100*200 || stats.Unheld+stats.Forsook > 0 {
		t.Errorf("%+v", stats)
	}
}

// TestSignalHandlers interrupts held threads by signal handlers that are held themselves.
func TestSignalHandlers(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "3", "2000")
	p := start(t, path, "3", "2000", "signals")
	nested := 0
	_, s := serve(t, p, func(h *Hit) {
		switch n := slotsOf(h.server, h.TID); {
		case n == 0:
			t.Error("the hit belongs to no thread")
		case n > 1:
			nested++
		}
		for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; {
			yield()
		}
	}, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Close()
	stats := s.Stats()
	t.Logf("%+v, %d with another hold inside", stats, nested)
	if stats.Served <= 6000 || stats.Unheld+stats.Forsook > 0 {
		t.Errorf("%+v", stats)
	}
}

func slotsOf(s *Server, tid int) (n int) {
	for i := range s.board.slots {
		if int(atomic.LoadUint32(&s.board.slots[i].tid)) == tid {
			n++
		}
	}
	return n
}

func TestForkedChildIsNotHeld(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "2", "5000")
	p := start(t, path, "2", "5000", "fork")
	_, s := serve(t, p, func(*Hit) { t.Error("a hit") }, p.work)
	p.Begin()
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Stats() != (Stats{}) {
		t.Errorf("%+v", s.Stats())
	}
}

func TestCloseLetsGo(t *testing.T) {
	path := build(t)
	const calls = "10000000" // long enough to last while there is no server, on a busy machine
	want := subject.Alone(t, path, "10", calls)
	p := start(t, path, "10", calls)
	held := make(chan func(), 1000)
	site, err := plant(path, p.PID, 0, p.work)
	if err != nil {
		t.Fatal(err)
	}
	defer site.Forget()
	for i := range 4 {
		s, err := Serve(site, 0, func(h *Hit) { held <- h.Hold() })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Serve(site, 0, nil); err != ErrServed {
			t.Fatal(err)
		}
		defer s.Close()
		if i == 0 {
			p.Begin()
		}
		for range 10 {
			select {
			case release := <-held:
				defer release() // has no effect, because it comes too late
			case <-time.After(limit):
				t.Fatal("no hit")
			}
		}
		s.Close()
	}
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRemove(t *testing.T) {
	path := build(t)
	p := start(t, path, "2", "1000")
	pid := p.PID
	fn, err := function(path, pid, p.work)
	if err != nil {
		t.Fatal(err)
	}
	site, s := serve(t, p, func(*Hit) { t.Error("a hit") }, p.work)
	text := func() string {
		code := make([]byte, len(fn.Code))
		if err := visit(pid, func(t *tracer) error {
			_, err := t.ReadAt(code, int64(fn.Start))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return string(code)
	}
	patched := []byte(text())
	if string(patched) == string(fn.Code) || !site.Stands(p.work) {
		t.Fatal("no jump")
	}
	site.Unpatched(fn.Start, patched)
	if string(patched) != string(fn.Code) {
		t.Error("Unpatched does not return the program's own bytes")
	}
	if err := visit(pid, func(t *tracer) error {
		site.target = t
		return site.Remove(p.work)
	}); err != nil {
		t.Fatal(err)
	}
	if text() != string(fn.Code) || site.Stands(p.work) {
		t.Error("the jump is still in the code")
	}
	p.Begin()
	p.Finish()
	if s.Stats() != (Stats{}) {
		t.Errorf("%+v", s.Stats())
	}
}

// TestStoppedTarget stops the target while its threads are held; no hit may be lost.
func TestStoppedTarget(t *testing.T) {
	path := build(t)
	want := subject.Alone(t, path, "4", "3000")
	p := start(t, path, "4", "3000")
	_, s := serve(t, p, func(*Hit) {}, p.work)
	p.Begin()
	for i := range 20 {
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		p.signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Millisecond)
		p.signal(syscall.SIGCONT)
	}
	if got := p.Finish(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := (Stats{Served: 12000}); s.Stats() != want {
		t.Errorf("%+v", s.Stats())
	}
}

func TestReclaim(t *testing.T) {
	p := start(t, build(t), "2", "10")
	site, s := serve(t, p, func(h *Hit) {}, p.work)
	for i := range site.memory.board.slots {
		site.memory.board.slots[i].tid = uint32(1 + i%2)
	}
	s.Reclaim(func(tid int) bool { return tid == 1 })
	free := 0
	for i := range site.memory.board.slots {
		if site.memory.board.slots[i].tid == 0 {
			free++
		}
	}
	if free != Slots/2 {
		t.Errorf("%d slots are free", free)
	}
	p.Begin()
	p.Finish()
	if got := fmt.Sprintf("%+v", s.Stats()); got != "{Served:20 Full:0 Unheld:0 Forsook:0 Deep:0}" {
		t.Error(got)
	}
}
