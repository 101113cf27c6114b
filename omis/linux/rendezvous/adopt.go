//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"

	"mirador/omis/code/x86/detour"
	"mirador/omis/host/proc"
)

// mostArenas limits the arenas to adopt, because the target can forge any number of them.
const mostArenas = 1 << 9

// Adopt returns the site of a target. It adopts what an earlier monitor, or a parent
// process, left there: arenas, and places that still have jumps. It changes nothing in
// the target. The site will use a new board, because threads may still be leaving an old
// one.
func Adopt(t Target, maps proc.Mappings, c Config) *Site {
	s := &Site{target: t, config: c, places: make(map[uint64]*place), former: make(map[uint64][]uint64)}
	for _, m := range maps {
		// The first page of an arena is not executable, so its code begins a mapping.
		if m.Inode == 0 && !m.Write && m.Exec && m.End-m.Start >= ArenaSize-arenaCode && m.Start >= arenaCode && len(s.arenas) < mostArenas {
			s.adoptArena(m.Start - arenaCode)
		}
	}
	return s
}

// adoptArena reads the stubs of an arena, if there is one at addr.
func (s *Site) adoptArena(addr uint64) {
	var found [len(magic)]byte
	if _, err := s.target.ReadAt(found[:], int64(addr+arenaMagic)); err != nil || found != magic {
		return
	}
	image := make([]byte, ArenaSize-arenaStubs)
	if _, err := s.target.ReadAt(image, int64(addr+arenaStubs)); err != nil {
		return
	}
	a := arena{addr: addr}
	for a.used < arenaRoom {
		stub := image[a.used*stubSize:][:stubSize]
		if binary.LittleEndian.Uint64(stub[stubAddr:]) == 0 {
			break
		}
		s.adoptPlace(stub, a.stub(a.used))
		a.used++
	}
	s.arenas = append(s.arenas, a)
}

func (s *Site) adoptPlace(stub []byte, addr uint64) {
	p := &place{stub: addr, Plan: Plan{detour.Window{Addr: binary.LittleEndian.Uint64(stub[stubAddr:])}}}
	s.former[p.Addr] = append(s.former[p.Addr], addr)
	code := make([]byte, stub[stubLength])
	if _, err := s.target.ReadAt(code, int64(p.Addr)); err != nil || len(code) < jumpSize {
		return // the code was unmapped
	}
	p.stands = [jumpSize]byte(code) == p.jump()
	if !p.stands {
		return // the code may have been replaced
	}
	copy(code, stub[stubOriginal:][:jumpSize])
	for n := 0; n < len(code); {
		length := detour.LandingPad
		if !detour.IsLandingPad(code[n:]) {
			inst, err := detour.Decode(code[n:])
			if err != nil {
				return
			}
			length = inst.Len
		}
		n += length
		p.Ends = append(p.Ends, n)
	}
	p.Code = code
	var err error
	if _, p.moved, err = encodeStub(&p.Plan, addr, 0); err == nil {
		s.places[p.Addr] = p
	}
}
