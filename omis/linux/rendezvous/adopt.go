//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"

	"mirador/omis/code/x86/detour"
	"mirador/omis/host/proc"
)

// mostArenas is how many arenas are taken over at most: the target can forge as many as it
// likes.
const mostArenas = 1 << 9

// Adopt makes the site of a target. It takes over what an earlier monitor, or a
// parent process, left there: arenas, with the places whose jumps still stand.
// Nothing changes in the target yet. There will be a fresh board, since threads
// may still be on their way out of an old one.
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

// adoptArena reads the stubs of an arena, if it is one.
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
		return // unmapped since
	}
	p.stands = [jumpSize]byte(code) == p.jump()
	if !p.stands {
		return // the code may be another's by now
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
