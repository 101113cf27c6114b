//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
)

// idle is a process that executes no system calls.
type idle struct{}

func (idle) Call(uint64, ...uint64) (int64, error)           { return 0, nil }
func (idle) CallOn(string, uint64, ...uint64) (int64, error) { return 0, nil }
func (idle) Threads() ([]Thread, error)                      { return nil, nil }
func (idle) Held(func(uint64) bool) ([]uint64, error)        { return nil, nil }
func (idle) Redirect(map[uint64]uint64) error                { return nil }
func (idle) Parked(landing.Goroutines, func(uint64) bool) ([]uint64, error) {
	return nil, nil
}

// exercise uses an adopted site as a monitor does.
func exercise(s *Site, begin, end uint64) {
	for at := begin; at < end; at += 24 {
		s.Contains(at)
		s.InPlace(at)
		s.Leads(at)
		s.Covers(at, at+8)
		s.Hide(at, make([]byte, 64))
		s.Inside(at)
	}
	points := s.Points()
	for _, p := range points {
		_ = p.SetActive(true)
		p.Covers(p.Addr())
	}
	if len(points) > 1 {
		b := s.Withdraw([]*Point{points[0].(*Point)})
		_ = b.Commit(idle{}, nil)
	}
	b := s.WithdrawAll()
	b.Silence()
	_ = b.Commit(idle{}, nil)
	s.Reclaim(func(Stub) bool { return false })
	s.Tidy()
	_ = s.Use(1, 2)
	s.Clean(s.memory)
}

// planted returns memory with places of two arenas, and the offsets of the words that a monitor reads.
func planted(t *testing.T) (memory ram, mapped proc.Mappings, words []int) {
	t.Helper()
	s, first, second, mapped := twoArenas(t)
	for n := range uint64(4) {
		a := []*arena{first, second}[n%2]
		change, _ := a.takeSwitch()
		addPlace(t, s, a, a.code()+0x8000+64*n, change, n != 3)
	}
	memory = s.memory.(ram)
	for _, a := range []*arena{first, second} {
		for at := uint64(0); at < a.used; at += 8 {
			words = append(words, int(a.code()+at-memory.begin))
		}
	}
	return memory, mapped, words
}

// TestHostileArenas adopts arenas that the process has overwritten at random.
func TestHostileArenas(t *testing.T) {
	memory, mapped, words := planted(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		b := ram{memory.begin, append([]byte(nil), memory.bytes...)}
		for range 1 + r.IntN(3) {
			v := r.Uint64() >> r.IntN(64)
			at := words[r.IntN(len(words))] + r.IntN(8)
			switch r.IntN(3) {
			case 0:
				binary.LittleEndian.PutUint64(b.bytes[at:], v)
			case 1:
				binary.LittleEndian.PutUint16(b.bytes[at:], uint16(v))
			case 2:
				b.bytes[at] += byte(v)
			}
		}
		if s, _ := Adopt(b, mapped); s != nil {
			exercise(s, mapped[1].Start, mapped[1].Start+0x400)
		}
	}
}

// TestForgedHeads adopts heads that claim more code than there is.
func TestForgedHeads(t *testing.T) {
	memory, mapped, _ := planted(t)
	for _, field := range []uint64{headUsed, headLength} {
		for _, v := range []uint64{1 << 60, 1<<64 - 1, 1 << 40, 1 << 25, 0} {
			b := ram{memory.begin, append([]byte(nil), memory.bytes...)}
			binary.LittleEndian.PutUint64(b.bytes[mapped[1].Start+field-b.begin:], v)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, _ := Adopt(b, mapped)
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; s == nil || len(s.arenas) != 1 || grown > 4*arenaCode {
				t.Errorf("a head of %#x is taken for an arena, or took %d bytes", v, grown)
			}
		}
	}
}

// TestManyForgedArenas adopts from a process with arena heads in all its code.
func TestManyForgedArenas(t *testing.T) {
	a := newArena(0)
	a.addr = 0x100000
	memory := ram{a.addr, make([]byte, a.length())}
	if err := (&Batch{site: NewSite(memory, 0, 0)}).open(a); err != nil {
		t.Fatal(err)
	}
	var mapped proc.Mappings
	for range 60000 {
		mapped = append(mapped, mapping(a)...)
	}
	if s, _ := Adopt(memory, mapped); len(s.arenas) != mostArenas {
		t.Errorf("%d arenas", len(s.arenas))
	}
}
