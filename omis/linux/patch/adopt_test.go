//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"fmt"
	"testing"

	"mirador/omis/code/x86/detour"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// ram is the memory of a process, beginning at an address.
type ram struct {
	begin uint64
	bytes []byte
}

func (r ram) ReadAt(b []byte, at int64) (int, error) {
	return r.move(len(b), at, func(m []byte) { copy(b, m) })
}

func (r ram) WriteAt(b []byte, at int64) (int, error) {
	return r.move(len(b), at, func(m []byte) { copy(m, b) })
}

func (r ram) move(length int, at int64, do func(memory []byte)) (int, error) {
	offset := uint64(at) - r.begin
	if offset+uint64(length) > uint64(len(r.bytes)) {
		return 0, fmt.Errorf("%#x is not mapped", at)
	}
	do(r.bytes[offset:][:length])
	return length, nil
}

// mapping returns the mappings of an arena.
func mapping(a *arena) proc.Mappings {
	return proc.Mappings{
		{Start: a.addr, End: a.code(), Read: true, Write: true, Private: true},
		{Start: a.code(), End: a.end(), Read: true, Exec: true, Private: true},
	}
}

// TestAdoptArenaWithoutBlocks kills monitors that have opened an arena and written no block yet.
// Each next monitor must find the arena and put its blocks there.
func TestAdoptArenaWithoutBlocks(t *testing.T) {
	a := newArena(0)
	a.addr = 0x10000
	memory := ram{a.addr, make([]byte, a.length())}
	mapped := mapping(a)
	first := NewSite(memory, 0x5000, 0x1000)
	if err := (&Batch{site: first}).open(a); err != nil {
		t.Fatal(err)
	}
	for killed := range 3 {
		s, inherited := Adopt(memory, mapped)
		if s == nil || inherited || len(s.arenas) != 1 {
			t.Fatalf("after %d monitors the arena is not found", killed+1)
		}
		next := s.arenas[0]
		b, ok := next.take(blockHead)
		if want := next.code() + headSize + uint64(killed*blockHead); !ok || b.addr != want {
			t.Fatalf("block %d is at %#x, want %#x", killed, b.addr, want)
		}
		some := binary.LittleEndian.AppendUint64(nil, b.state(holdsPlace))
		if err := (&Batch{site: s, writes: []write{{b.addr, some}}}).Fill(); err != nil {
			t.Fatal(err)
		}
	}
}

// addPlace puts a place with a point into an arena. Only if standing is true, a jump leads to the place.
func addPlace(t *testing.T, s *Site, a *arena, at, change uint64, standing bool) {
	t.Helper()
	p := &place{Window: detour.Window{Addr: at, Code: make([]byte, detour.JumpSize), Ends: []int{detour.JumpSize}}, copies: []int{0}}
	p.points, p.codes = []*Point{{site: s, at: at, change: change}}, []span{{}}
	p.block, _ = a.take(p.stubOffset() + blockAlign)
	p.stub = p.block.addr + uint64(p.stubOffset())
	if jump := p.jump(); standing {
		if _, err := s.memory.WriteAt(jump[:], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&Batch{site: s, writes: []write{{p.block.addr, p.describe()}}}).Fill(); err != nil {
		t.Fatal(err)
	}
}

// twoArenas returns a site with two arenas, and their mappings.
func twoArenas(t *testing.T) (s *Site, first, second *arena, mapped proc.Mappings) {
	t.Helper()
	first, second = newArena(0), newArena(0)
	first.addr = 0x10000
	second.addr = first.end()
	s = NewSite(ram{first.addr, make([]byte, first.length()+second.length())}, 0x5000, 0x1000)
	for _, a := range []*arena{first, second} {
		mapped = append(mapped, mapping(a)...)
		if err := (&Batch{site: s}).open(a); err != nil {
			t.Fatal(err)
		}
	}
	return s, first, second, mapped
}

// TestAdoptSwitchElsewhere adopts a point whose stub is in another arena than its switch, as after
// a place was rebuilt. The switch must not be given to another point.
func TestAdoptSwitchElsewhere(t *testing.T) {
	s, first, second, mapped := twoArenas(t)
	taken, _ := first.takeSwitch()
	addPlace(t, s, second, second.code()+0x8000, taken, true)
	s, _ = Adopt(s.memory, mapped)
	if s == nil || len(s.arenas) != 2 || len(s.places) != 1 || s.places[0].points[0].change != taken {
		t.Fatal("the place is not found")
	}
	if again, ok := s.arenas[0].takeSwitch(); !ok || again == taken {
		t.Errorf("the switch at %#x is given to two points", again)
	}
}

// TestAdoptFormerStub adopts both stubs of a place that a killed monitor was rebuilding. The switch
// that both stubs read must be freed only with the last stub.
func TestAdoptFormerStub(t *testing.T) {
	for _, standing := range []bool{true, false} {
		s, first, _, mapped := twoArenas(t)
		at := first.code() + 0x8000
		taken, _ := first.takeSwitch()
		addPlace(t, s, first, at, taken, false)
		addPlace(t, s, first, at, taken, standing)
		s, _ = Adopt(s.memory, mapped)
		if got := len(s.retired); got != map[bool]int{true: 1, false: 2}[standing] {
			t.Fatalf("%d stubs are retired", got)
		}
		occupied := s.retired[0] // a thread is in one of the stubs
		s.Reclaim(func(one Stub) bool { return !standing && one.place == occupied })
		s.Tidy()
		if idle := s.arenas[0].idle; len(idle) > 0 {
			t.Errorf("standing: %v, the switches %#x are given back", standing, idle)
		}
		s.Reclaim(func(Stub) bool { return false })
		s.Tidy()
		if idle := s.arenas[0].idle; len(idle) != map[bool]int{true: 0, false: 1}[standing] {
			t.Errorf("standing: %v, the switches %#x are given back in the end", standing, idle)
		}
	}
}

// TestSwitchThatWasOn checks that a new point is off even if its switch belonged to a point that
// was on until it was removed.
func TestSwitchThatWasOn(t *testing.T) {
	a := newArena(0)
	a.addr = 0x20000
	memory := ram{0x10000, make([]byte, 0x10000+a.length())}
	s := NewSite(memory, 0x5000, 0x1000)
	if err := (&Batch{site: s}).open(a); err != nil {
		t.Fatal(err)
	}
	switched, _ := a.takeSwitch()
	former := &Point{site: s, change: switched}
	if err := former.SetActive(true); err != nil {
		t.Fatal(err)
	}
	s.releaseAll([]*Point{former})
	point := &Point{site: s, at: 0x10000, patch: node.Patch{Addr: 0x10000, Make: func(node.Spot) ([]byte, error) { return nil, nil }}}
	nop := []byte{0x0f, 0x1f, 0x44, 0, 0}
	b := &Batch{site: s}
	if err := b.build(&change{Window: detour.Window{Addr: 0x10000, Code: nop, Ends: []int{len(nop)}}, points: []*Point{point}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Fill(); err != nil {
		t.Fatal(err)
	}
	if point.change != switched || memory.bytes[switched-memory.begin] != 0 {
		t.Errorf("the point has the switch at %#x, which says %d; want that at %#x, and 0", point.change, memory.bytes[point.change-memory.begin], switched)
	}
}
