//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/host/tracepoint"
)

// unit is a piece of the slab by its number: two words. What takes several has the
// number of its first. Number 0 is nobody's.
type unit uint32

const (
	unitShift = 4
	unitSize  = 1 << unitShift
	// slabUnits is how many there are: 3 for a place where one thing is counted, 1 for
	// each store and each process.
	slabUnits = 1 << 18
	// mostUnits is how many may be taken as one.
	mostUnits = 32
)

// slab is memory that the monitor shares with its programs: what it tells them. Who
// takes units of it does so by Placer.mu; the words themselves are atomic.
type slab struct {
	words *ebpf.Map // an array of one element
	bytes []byte    // the same, as the monitor sees it
	free  [mostUnits + 1][]unit
	next  unit
}

func newSlab(set *tracepoint.Set) (*slab, error) {
	m, b, err := sharedArray(set, slabUnits*unitSize)
	if err != nil {
		return nil, err
	}
	return &slab{words: m, bytes: b, next: 1}, nil
}

// sharedArray makes memory that programs and the monitor have in common.
func sharedArray(set *tracepoint.Set, size uint32) (*ebpf.Map, []byte, error) {
	m, err := set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, nil, err
	}
	b, err := mapShared(m, size)
	return m, b, err
}

func mapShared(m *ebpf.Map, size uint32) ([]byte, error) {
	b, err := unix.Mmap(m.FD(), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot share memory with programs in the kernel: %w", err)
	}
	return b, nil
}

// take reserves units that follow each other; they are zero.
func (s *slab) take(n int) (unit, error) {
	if n > mostUnits {
		return 0, fmt.Errorf("a program in the kernel has room for %d words, not %d", 2*mostUnits, 2*n)
	}
	if list := s.free[n]; len(list) > 0 {
		u := list[len(list)-1]
		s.free[n] = list[:len(list)-1]
		for i := range 2 * n {
			s.word(u, i).Store(0)
		}
		return u, nil
	}
	if s.next+unit(n) > slabUnits-mostUnits {
		return 0, fmt.Errorf("the kernel runs as many programs for this monitor as it has room for (%d words)", 2*slabUnits)
	}
	u := s.next
	s.next += unit(n)
	return u, nil
}

// keepOnly makes the slab of a former monitor ours: what is not used is free. used says
// how many units each has that is.
func (s *slab) keepOnly(used map[unit]int) {
	var order []unit
	for u := range used {
		order = append(order, u)
	}
	slices.Sort(order)
	at := unit(1)
	for _, u := range order {
		for ; u-at >= unitsOfHead+1 && at < u; at += unitsOfHead + 1 { // as most spots take
			s.give(at, unitsOfHead+1)
		}
		for ; at < u; at++ {
			s.give(at, 1)
		}
		at = u + unit(used[u])
	}
	s.next = at
	clear(s.bytes[int(at)*unitSize:])
}

// give lets others use units again.
func (s *slab) give(u unit, n int) {
	if u != 0 {
		s.free[n] = append(s.free[n], u)
	}
}

// word is a word of what begins with a unit.
func (s *slab) word(u unit, i int) *atomic.Uint64 { return wordIn(s.bytes, unitSize*int(u)+8*i) }

// address makes of the number of a unit in one register its address, in another one;
// where there is no such unit it goes to a label.
func (s *slab) address(to, number asm.Register, label string) asm.Instructions {
	return asm.Instructions{
		asm.JGE.Imm(number, slabUnits-mostUnits, label),
		asm.LSh.Imm(number, unitShift),
		asm.LoadMapValue(to, s.words.FD(), 0),
		asm.Add.Reg(to, number),
	}
}

// at puts the address of a unit into a register.
func (s *slab) at(to asm.Register, u unit) asm.Instruction {
	return asm.LoadMapValue(to, s.words.FD(), unitSize*uint32(u))
}

func (s *slab) close() error { return unix.Munmap(s.bytes) }
