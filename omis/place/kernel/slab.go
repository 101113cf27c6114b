//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
)

// slab allocates blocks of parameters in memory that programs read. memory.mu guards the
// allocation; the words themselves are atomic.
type slab struct {
	code.Slab
	free [code.MostUnits + 1][]code.Unit // by the length of the block
	next code.Unit                       // units from here on were never used
}

func newSlab(set *tracepoint.Set) (*slab, error) {
	m, b, err := sharedArray(set, code.SlabUnits*code.UnitSize)
	if err != nil {
		return nil, err
	}
	return &slab{Slab: code.Slab{Words: m, Bytes: b}, next: 1}, nil
}

// take reserves n consecutive units. Their words are zero.
func (s *slab) take(n int) (code.Unit, error) {
	if n > code.MostUnits {
		return 0, fmt.Errorf("a program in the kernel has room for %d words, not %d", 2*code.MostUnits, 2*n)
	}
	if list := s.free[n]; len(list) > 0 {
		u := list[len(list)-1]
		s.free[n] = list[:len(list)-1]
		for i := range 2 * n {
			s.Word(u, i).Store(0)
		}
		return u, nil
	}
	if s.next+code.Unit(n) > code.SlabUnits-code.MostUnits {
		return 0, fmt.Errorf("the kernel runs as many programs for this monitor as it has room for (%d words)", 2*code.SlabUnits)
	}
	u := s.next
	s.next += code.Unit(n)
	return u, nil
}

// keepOnly frees all units of an adopted slab except the used blocks, which are given with their
// lengths.
func (s *slab) keepOnly(used map[code.Unit]int) {
	var order []code.Unit
	for u := range used {
		order = append(order, u)
	}
	slices.Sort(order)
	at := code.Unit(1)
	const usual = code.UnitsOfHead + 1 // the length of most spots
	for _, u := range order {
		for ; u-at >= usual && at < u; at += usual {
			s.give(at, usual)
		}
		for ; at < u; at++ {
			s.give(at, 1)
		}
		at = u + code.Unit(used[u])
	}
	s.next = at
	clear(s.Bytes[int(at)*code.UnitSize:])
}

// give frees a block.
func (s *slab) give(u code.Unit, n int) {
	if u != 0 {
		s.free[n] = append(s.free[n], u)
	}
}

func (s *slab) close() error { return unix.Munmap(s.Bytes) }
