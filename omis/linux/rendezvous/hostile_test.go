//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/detour"
	"mirador/omis/host/proc"
)

// forged is the memory of a target that imitates what an earlier monitor might have left.
// It makes no calls.
type forged struct {
	begin uint64
	bytes []byte
}

var errUnmapped = errors.New("unmapped")

func (f *forged) at(n int, addr int64) ([]byte, error) {
	if at := uint64(addr) - f.begin; at+uint64(n) >= at && at+uint64(n) <= uint64(len(f.bytes)) {
		return f.bytes[at:][:n], nil
	}
	return nil, errUnmapped
}

func (f *forged) ReadAt(b []byte, addr int64) (int, error) {
	m, err := f.at(len(b), addr)
	return copy(b, m), err
}

func (f *forged) WriteAt(b []byte, addr int64) (int, error) {
	m, err := f.at(len(b), addr)
	return copy(m, b), err
}

func (f *forged) PID() int { return 0 }

func (f *forged) Call(uint64, ...uint64) (int64, error) { return -int64(unix.ENOMEM), nil }

// forge makes an arena with some places that have jumps.
func forge() (*forged, proc.Mappings) {
	const base = 0x400000
	f := &forged{base, make([]byte, 2*ArenaSize)}
	copy(f.bytes[arenaMagic:], magic[:])
	a := arena{addr: base}
	for n := range 4 {
		p := place{stub: a.stub(n), Plan: Plan{detour.Window{Addr: base + ArenaSize + uint64(64*n)}}}
		stub := f.bytes[p.stub-base:]
		binary.LittleEndian.PutUint64(stub[stubAddr:], p.Addr)
		copy(stub[stubOriginal:], []byte{0x55, 0x48, 0x89, 0xe5, 0x90}) // push, mov, nop
		stub[stubLength] = 5
		jump := p.jump()
		copy(f.bytes[p.Addr-base:], jump[:])
	}
	return f, proc.Mappings{
		{Start: base, End: base + arenaCode, Read: true, Private: true},
		{Start: base + arenaCode, End: base + ArenaSize, Read: true, Exec: true, Private: true},
	}
}

func TestForgedArenaIsAdopted(t *testing.T) {
	f, maps := forge()
	if s := Adopt(f, maps, Config{}); len(s.Standing()) != 4 {
		t.Errorf("%d places have jumps", len(s.Standing()))
	}
}

// TestHostileArenas lets a target overwrite what an earlier monitor has left with random
// values.
func TestHostileArenas(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		f, maps := forge()
		for range 1 + r.IntN(4) {
			at := arenaStubs + r.IntN(4*stubSize)
			if r.IntN(4) == 0 {
				at = ArenaSize + r.IntN(256)
			}
			f.bytes[at] = byte(r.Uint32())
		}
		s := Adopt(f, maps, Config{})
		for pc := uint64(f.begin); pc < f.begin+2*ArenaSize; pc += 37 {
			s.Contains(pc)
			s.Holding(pc)
		}
		for n := range uint64(4 * stubSize) {
			s.InPlace(f.begin + arenaStubs + n)
			s.PlaceOf(f.begin + arenaStubs + n)
			s.Moved(f.begin + ArenaSize + n)
		}
		s.Unpatched(f.begin+ArenaSize, make([]byte, 256))
		for _, addr := range s.Standing() {
			s.Copy(addr)
			s.PatchAt(addr)
			s.Covering(addr, 100)
			_ = s.Remove(addr)
		}
		s.Clean(f)
		s.Forget()
	}
}

// TestManyForgedArenas lets a target show arenas in all its code.
func TestManyForgedArenas(t *testing.T) {
	f, one := forge()
	var maps proc.Mappings
	for range 60000 {
		maps = append(maps, one...)
	}
	if s := Adopt(f, maps, Config{}); len(s.arenas) != mostArenas {
		t.Errorf("%d arenas", len(s.arenas))
	}
}

// TestHostileBoard lets a target write random values to the board while it is served.
func TestHostileBoard(t *testing.T) {
	b, err := unix.Mmap(-1, 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	f, maps := forge()
	s := Adopt(f, maps, Config{})
	s.at, s.memory = 0x10000, &memory{b, (*board)(unsafe.Pointer(&b[0]))}
	hits := 0
	releases := make(chan func(), 1<<16)
	v, err := Serve(s, 0, func(h *Hit) {
		if hits++; hits%3 == 0 && len(releases) < cap(releases) {
			releases <- h.Hold()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 10))
	slots := int(unsafe.Offsetof(v.board.slots))
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		for range 100 {
			at, value := 4*r.IntN(boardSize/4), r.Uint32()>>r.IntN(32)
			switch slot := r.IntN(Slots); r.IntN(4) {
			case 0: // a slot that is held
				at, value = slots+slot*slotSize, v.owner|r.Uint32()&futexWaiters
			case 1:
				at, value = int(unsafe.Offsetof(v.board.pend))+4*r.IntN(2), r.Uint32()
			}
			*(*uint32)(unsafe.Pointer(&b[at])) = value
		}
		v.board.bell++
		futexWake(&v.board.bell)
		var now Registers
		now[R15] = s.at + uint64(slots+r.IntN(Slots)*slotSize)
		now[RBP] = f.begin + uint64(r.IntN(2*ArenaSize))
		_, _ = v.Extract(s, int(v.board.slots[0].tid), &now, func(*Hit, Stand) error { return nil })
		now[R8] = atRest
		s.Rest(&now)
		v.Gate(r.IntN(2) == 0)
		v.Reclaim(func(tid int) bool { return tid%2 == 0 })
		v.Stats()
		select {
		case release := <-releases:
			release()
		default:
		}
	}
	closed := make(chan struct{})
	go func() { defer close(closed); v.Close() }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not end")
	}
	if hits == 0 {
		t.Error("there were no hits")
	}
	s.Forget()
}
