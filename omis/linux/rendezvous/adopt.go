//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"

	"mirador/omis/linux/proc"
)

// Adopt takes over what an earlier monitor, or a parent process, left in a
// target: its arenas, with the places whose jumps still stand. The board is a
// fresh one, since threads may still be on their way out of the old one. Without
// anything to adopt, the site is nil.
func Adopt(t Target, maps proc.Mappings, c Config) (*Site, error) {
	s := &Site{target: t, config: c, places: make(map[uint64]*place)}
	for _, m := range maps {
		// The first page was split off by madvise.
		if m.Inode != 0 || m.Write || !m.Exec || m.End-m.Start < ArenaSize-arenaCode {
			continue
		}
		for at := m.Start; at+ArenaSize-arenaCode <= m.End; at += pageSize {
			if s.adoptArena(at - arenaCode) {
				at += ArenaSize - arenaCode - pageSize
			}
		}
	}
	if len(s.arenas) == 0 {
		return nil, nil
	}
	if err := s.share(s.arenas[0].addr + arenaMagic); err != nil {
		return nil, err
	}
	for _, a := range s.arenas {
		if err := s.point(a, s.at); err != nil {
			s.memory.close()
			return nil, err
		}
	}
	return s, nil
}

// adoptArena reads the stubs of an arena, if it is one.
func (s *Site) adoptArena(addr uint64) bool {
	var found [len(magic)]byte
	if _, err := s.target.ReadAt(found[:], int64(addr+arenaMagic)); err != nil || found != magic {
		return false
	}
	image := make([]byte, ArenaSize-arenaStubs)
	if _, err := s.target.ReadAt(image, int64(addr+arenaStubs)); err != nil {
		return false
	}
	a := arena{addr: addr}
	for a.used < arenaRoom {
		stub := image[a.used*stubSize:][:stubSize]
		if binary.LittleEndian.Uint64(stub[stubAt:]) == 0 {
			break
		}
		s.adoptPlace(stub, a.stub(a.used))
		a.used++
	}
	s.arenas = append(s.arenas, a)
	return true
}

func (s *Site) adoptPlace(stub []byte, addr uint64) {
	p := &place{stub: addr, Plan: Plan{
		Addr: binary.LittleEndian.Uint64(stub[stubAddr:]), At: binary.LittleEndian.Uint64(stub[stubAt:]),
	}}
	code := make([]byte, stub[stubLength])
	if _, err := s.target.ReadAt(code, int64(p.At)); err != nil || len(code) < jumpSize {
		return // unmapped since
	}
	p.stands = [jumpSize]byte(code) == jump(p.At, addr+stubEntry)
	if !p.stands {
		return // its stub is of no use: the code may be another's by now
	}
	copy(code, stub[stubOriginal:][:jumpSize])
	for n := 0; n < len(code); {
		inst, err := decode(code[n:])
		if err != nil {
			return
		}
		n += inst.Len
		p.ends = append(p.ends, n)
	}
	p.code = code
	var err error
	if _, p.moved, err = encodeStub(&p.Plan, addr, 0); err == nil {
		s.places[p.Addr] = p
	}
}

// Places lists the addresses where jumps stand.
func (s *Site) Places() []uint64 {
	var all []uint64
	for addr, p := range s.places {
		if p.stands {
			all = append(all, addr)
		}
	}
	return all
}
