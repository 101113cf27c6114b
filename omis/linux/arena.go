//go:build linux && amd64

package linux

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
)

// reach is the greatest distance between an arena and the code and data it works with. It
// leaves room for the code's own module within the ±2 GB of a relative address.
const reach = 0x60000000

// word encodes an aligned machine word, which the kernel copies at once.
func word(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func near(a, b uint64) bool { return a-b < reach || b-a < reach }

// slot returns an arena near addr with a free slot, and maps an arena if there is none.
func (s *space) slot(maps proc.Mappings, addr uint64) (*arena, error) {
	for i := range s.arenas {
		a := &s.arenas[i]
		if near(a.addr, addr) && a.next < a.last {
			return a, nil
		}
	}
	if len(s.arenas) == resident.MaxArenas {
		return nil, omis.Errorf(omis.NoMemory, "process %d has no room for more breakpoints", s.o.proc.PID)
	}
	s.o.tracer.freeze(nil)
	defer s.o.tracer.thaw()
	addr, err := s.mapArena(maps, addr)
	if err != nil {
		return nil, err
	}
	// The handler must know its bounds before a thread can be in it.
	if err := s.write(s.home.Arena(len(s.arenas)), resident.Bounds(addr)); err != nil {
		return nil, err
	}
	return s.addArena(addr, false), nil
}

func (s *space) addArena(addr uint64, home bool) *arena {
	first, last := resident.Slots(addr, home)
	s.arenas = append(s.arenas, arena{addr, first, last})
	return &s.arenas[len(s.arenas)-1]
}

// mapArena maps an arena in the frozen process, by a system call of one of its threads. The process may not write there;
// the monitor writes through /proc/PID/mem.
func (s *space) mapArena(maps proc.Mappings, near uint64) (uint64, error) {
	for _, addr := range vacancies(maps, near, resident.ArenaSize) {
		r, err := s.o.injector.inject(resident.Call{Number: unix.SYS_MMAP, Args: [6]uint64{
			addr, resident.ArenaSize, unix.PROT_READ | unix.PROT_EXEC,
			unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0,
		}})
		switch {
		case err != nil:
			return 0, err
		case r == int64(addr):
			return addr, nil
		case unix.Errno(-r) != unix.EEXIST:
			return 0, omis.Errorf(omis.NoMemory, "process %d cannot get memory for breakpoints: %v", s.o.proc.PID, unix.Errno(-r))
		}
	}
	return 0, omis.Errorf(omis.NoMemory, "process %d has no free addresses near its code at %#x", s.o.proc.PID, near)
}

// vacancies proposes addresses for an arena of some bytes near addr, the best first. Addresses
// below addr come before those above, because heaps and stacks grow upwards and downwards
// there.
func vacancies(maps proc.Mappings, addr, room uint64) []uint64 {
	const (
		page   = 0x1000
		lowest = 0x10000
		gap    = 0x100000 // distance to other mappings, if there is room
	)
	var below, above []uint64
	end := uint64(lowest)
	for _, m := range maps {
		size := m.Start - end
		if m.Start < end {
			size = 0
		}
		if size >= room {
			distance := min(gap, (size-room)/2&^(page-1))
			if low := m.Start - distance - room; low < addr && near(low, addr) {
				below = append([]uint64{low}, below...)
			}
			if high := end + max(distance, min(reach/2, (size-room)/2&^(page-1))); high > addr && near(high, addr) && m.Path != "[stack]" {
				above = append(above, high)
			}
		}
		end = m.End
	}
	return append(below, above...)
}
