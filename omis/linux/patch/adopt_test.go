//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"fmt"
	"testing"

	"mirador/omis/linux/detour"
	"mirador/omis/linux/proc"
)

// ram is memory of a process from an address on.
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

// TestAdoptArenaWithoutBlocks: a monitor that is killed as soon as it has opened an
// arena, before it has put a block there, leaves one that the next puts its blocks
// into, and the one after finds.
func TestAdoptArenaWithoutBlocks(t *testing.T) {
	a := newArena(0)
	a.addr = 0x10000
	memory := ram{a.addr, make([]byte, a.length())}
	mapped := proc.Mappings{{Start: a.code(), End: a.end(), Read: true, Exec: true, Private: true}}
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
			t.Fatalf("block %d is at %#x, not %#x", killed, b.addr, want)
		}
		some := binary.LittleEndian.AppendUint64(nil, b.state(holdsPlace))
		if err := (&Batch{site: s, writes: []write{{b.addr, some}}}).Fill(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAdoptSwitchElsewhere: a stub that was made anew may be in another arena than the
// switch of its point, which nobody else gets.
func TestAdoptSwitchElsewhere(t *testing.T) {
	first, second := newArena(0), newArena(0)
	first.addr = 0x10000
	second.addr = first.end()
	memory := ram{first.addr, make([]byte, first.length()+second.length())}
	var mapped proc.Mappings
	s := NewSite(memory, 0x5000, 0x1000)
	for _, a := range []*arena{first, second} {
		mapped = append(mapped, proc.Mapping{Start: a.code(), End: a.end(), Read: true, Exec: true, Private: true})
		if err := (&Batch{site: s}).open(a); err != nil {
			t.Fatal(err)
		}
	}
	taken, _ := first.takeSwitch()
	p := &place{Window: detour.Window{Addr: second.code() + 0x8000, Code: make([]byte, detour.JumpSize), Ends: []int{detour.JumpSize}}, copies: []int{0}}
	p.points, p.codes = []*Point{{site: s, change: taken}}, []span{{}}
	p.block, _ = second.take(p.stubOffset() + blockAlign)
	p.stub = p.block.addr + uint64(p.stubOffset())
	jump := p.jump()
	if _, err := memory.WriteAt(jump[:], int64(p.Addr)); err != nil {
		t.Fatal(err)
	}
	if err := (&Batch{site: s, writes: []write{{p.block.addr, p.describe()}}}).Fill(); err != nil {
		t.Fatal(err)
	}
	s, _ = Adopt(memory, mapped)
	if s == nil || len(s.arenas) != 2 || len(s.places) != 1 || len(s.places[0].points) != 1 || s.places[0].points[0].change != taken {
		t.Fatal("the place is not found")
	}
	if again, ok := s.arenas[0].takeSwitch(); !ok || again == taken {
		t.Errorf("the switch at %#x is given to two", again)
	}
}
