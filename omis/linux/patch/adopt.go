//go:build linux && amd64

package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"mirador/omis"
	"mirador/omis/linux/detour"
	"mirador/omis/linux/proc"
)

// Adopt finds what an earlier monitor, or the parent of a forked process, has put
// into a process; nil: nothing. It tells whether it is a parent's: then the code is
// off, and shares memory with another process. Nothing changes in the process yet.
func Adopt(memory Memory, mapped proc.Mappings) (s *Site, inherited bool) {
	s = &Site{memory: memory}
	var arenas []*arena
	var places, retired []*place
	for _, m := range mapped {
		if m.Inode != 0 || m.Write || !m.Exec || !m.Private {
			continue
		}
		for at := m.Start; at+pageSize <= m.End; at += pageSize {
			a, alive := s.adoptArena(at)
			if a == nil {
				continue
			}
			inherited = inherited || !alive
			arenas = append(arenas, a)
			stand, rest := s.adoptPlaces(a)
			places, retired = append(places, stand...), append(retired, rest...)
			at += a.size - pageSize
		}
	}
	if len(arenas) == 0 {
		return nil, false
	}
	for _, p := range slices.Concat(places, retired) {
		for _, point := range p.points {
			for _, a := range arenas {
				a.gave(point.change)
			}
		}
	}
	s.note(arenas, places, retired)
	return s, inherited
}

// adoptArena reads the head of an arena's code, if there is one.
func (s *Site) adoptArena(code uint64) (a *arena, alive bool) {
	var head [headSize]byte
	if _, err := s.memory.ReadAt(head[:], int64(code)); err != nil || [16]byte(head[headMagic:]) != magic {
		return nil, false
	}
	le := binary.LittleEndian
	a = &arena{size: le.Uint64(head[headLength:]), used: le.Uint64(head[headUsed:]), next: firstSwitch}
	a.told = a.used
	a.switches = switchesFor(a.size)
	a.addr = code - a.switches
	s.base, s.shared = le.Uint64(head[headBase:]), le.Uint64(head[headShared:])
	var word [8]byte
	_, err := s.memory.ReadAt(word[:], int64(a.addr+arenaAlive))
	return a, err == nil && word != [8]byte{}
}

// adoptPlaces reads the blocks of an arena: places whose jumps stand, and others,
// which threads may be in.
func (s *Site) adoptPlaces(a *arena) (stand, retired []*place) {
	code := make([]byte, a.used)
	if _, err := s.memory.ReadAt(code, int64(a.code())); err != nil {
		return nil, nil
	}
	for at := uint64(headSize); at+blockHead <= a.used; {
		state := binary.LittleEndian.Uint64(code[at:])
		b := block{a.code() + at, int(uint32(state))}
		if b.size == 0 || at+uint64(b.size) > a.used {
			break // it was being made when the monitor died: nothing leads there
		}
		switch kind(state >> 32) {
		case holdsNothing:
			a.free = append(a.free, b)
		case holdsPlace:
			if p := s.adoptPlace(a, b, code[at:][:b.size]); p != nil && !p.gone {
				stand = append(stand, p)
			} else if p != nil {
				p.gone = false
				retired = append(retired, p)
			}
		}
		at += uint64(b.size)
	}
	return stand, retired
}

// adoptPlace reads the description of a place. Where its jump stands no more, it
// says so.
func (s *Site) adoptPlace(a *arena, b block, text []byte) *place {
	le := binary.LittleEndian
	p := &place{block: b, Window: detour.Window{Addr: le.Uint64(text[blockAddr:])}}
	insts, points := int(le.Uint16(text[blockInsts:])), int(le.Uint16(text[blockPoints:]))
	end := align(blockHead + instSize*insts + pointSize*points)
	if end > len(text) {
		return nil
	}
	p.stub = b.addr + uint64(end)
	stub, rest := text[end:], text[blockHead:]
	for range insts {
		p.Ends = append(p.Ends, int(le.Uint32(rest)))
		p.copies = append(p.copies, int(le.Uint32(rest[4:])))
		rest = rest[instSize:]
	}
	for range points {
		point := &Point{site: s, patch: omis.Patch{Addr: le.Uint64(rest)}, at: le.Uint64(rest[8:]), change: le.Uint64(rest[16:])}
		code := span{int(le.Uint32(rest[24:])), int(le.Uint32(rest[28:]))}
		if code.begin > code.end || code.end > len(stub) {
			return nil
		}
		point.left, point.from = bytes.Clone(stub[code.begin:code.end]), p.stub+uint64(code.begin)
		p.points, p.codes = append(p.points, point), append(p.codes, code)
		rest = rest[pointSize:]
	}
	p.Code = make([]byte, le.Uint16(text[blockLength:]))
	if text[blockExclusive] != 0 {
		p.exclusive = exclusiveBecause(errors.New("as the earlier monitor found"))
	}
	_, err := s.memory.ReadAt(p.Code, int64(p.Addr))
	p.gone = err != nil || len(p.Code) < detour.JumpSize || [detour.JumpSize]byte(p.Code) != p.jump()
	copy(p.Code, text[blockOriginal:][:detour.JumpSize])
	return p
}

// Base is where the process has shared memory, and how much.
func (s *Site) Base() (base, size uint64) { return s.base, s.shared }

// Use has the arenas of a stopped process belong to it, with shared memory at base.
func (s *Site) Use(base, size uint64) error {
	for _, a := range s.arenas {
		if err := s.writeWord(a.code()+headBase, base); err != nil {
			return err
		}
		if err := s.writeWord(a.code()+headShared, size); err != nil {
			return err
		}
		if err := s.writeWord(a.addr+arenaAlive, 1); err != nil {
			return err
		}
	}
	s.base, s.shared = base, size
	return nil
}
