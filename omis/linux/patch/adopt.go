//go:build linux && amd64

package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"mirador/omis/code/x86/detour"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// The process can write any values where an earlier monitor had its arenas. Adoption therefore
// checks every number before using it, and these limits bound the work.
const (
	mostArenas = 1 << 9
	mostBytes  = 1 << 26 // size of the code of all arenas
	mostBlocks = 1 << 18 // blocks of all arenas
)

// inspection is the state of one adoption.
type inspection struct {
	site            *Site
	arenas          []*arena
	places, retired []*place
	bytes           uint64 // size of the code read so far
	blocks          int
}

// Adopt finds the code that an earlier monitor, or the parent of a forked process, has put into a
// process. It returns nil if there is none. inherited reports that a parent's monitor put it there;
// such code is off, and its shared memory belongs to the parent as well. Adopt changes nothing in
// the process.
func Adopt(memory Memory, mapped proc.Mappings) (s *Site, inherited bool) {
	in := &inspection{site: &Site{memory: memory}}
	for i, m := range mapped {
		// The memory before the code has other access rights, so the code begins a mapping.
		if i == 0 || m.Inode != 0 || m.Write || !m.Exec || !m.Private || len(in.arenas) == mostArenas {
			continue
		}
		a, alive := in.arena(&mapped[i-1], &m)
		if a == nil {
			continue
		}
		inherited = inherited || !alive
		in.arenas = append(in.arenas, a)
	}
	if len(in.arenas) == 0 {
		return nil, false
	}
	for _, a := range in.arenas {
		in.adoptPlaces(a)
	}
	in.checkPlaces()
	for _, p := range slices.Concat(in.places, in.retired) {
		for _, point := range p.points {
			in.arenaOf(point.change).markUsed(point.change)
		}
	}
	in.site.note(in.arenas, in.places, in.retired)
	return in.site, inherited
}

// arena reads the head of an arena at the beginning of mapping m. The mapping before must contain
// the arena's switches.
func (in *inspection) arena(before, m *proc.Mapping) (a *arena, alive bool) {
	s := in.site
	var head [headSize]byte
	if _, err := s.memory.ReadAt(head[:], int64(m.Start)); err != nil || [16]byte(head[headMagic:]) != magic {
		return nil, false
	}
	le := binary.LittleEndian
	a = &arena{size: le.Uint64(head[headLength:]), used: le.Uint64(head[headUsed:]), next: firstSwitch}
	if a.size%pageSize != 0 || a.size > m.End-m.Start || a.used < headSize || a.used > a.size {
		return nil, false
	}
	if in.bytes += a.used; in.bytes > mostBytes {
		return nil, false
	}
	a.recorded = a.used
	a.switches = switchesFor(a.size)
	a.addr = m.Start - a.switches
	if before.End != m.Start || !before.Write || before.Start > a.addr || a.addr > m.Start {
		return nil, false
	}
	s.base, s.shared = le.Uint64(head[headBase:]), le.Uint64(head[headShared:])
	var word [8]byte
	_, err := s.memory.ReadAt(word[:], int64(a.addr+arenaAlive))
	return a, err == nil && word != [8]byte{}
}

// adoptPlaces reads the blocks of an arena: places with jumps, and places without, whose stubs may
// still contain threads.
func (in *inspection) adoptPlaces(a *arena) {
	code := make([]byte, a.used)
	if _, err := in.site.memory.ReadAt(code, int64(a.code())); err != nil {
		return
	}
	for at := uint64(headSize); at+blockHead <= a.used; {
		state := binary.LittleEndian.Uint64(code[at:])
		b := block{a.code() + at, int(uint32(state))}
		if b.size < blockHead || b.size%blockAlign != 0 || at+uint64(b.size) > a.used {
			break // the monitor died while it wrote this block, so no jump leads there
		}
		if in.blocks++; in.blocks > mostBlocks {
			break
		}
		switch kind(state >> 32) {
		case holdsNothing:
			a.free = append(a.free, b)
		case holdsPlace:
			if p := in.adoptPlace(b, code[at:][:b.size]); p != nil && !p.gone {
				in.places = append(in.places, p)
			} else if p != nil {
				p.gone = false
				in.retired = append(in.retired, p)
			}
		}
		at += uint64(b.size)
	}
}

// adoptPlace reads the description of a place, nil if it is invalid. It sets gone if the place has
// no jump any more.
func (in *inspection) adoptPlace(b block, text []byte) *place {
	le := binary.LittleEndian
	p := &place{block: b, Window: detour.Window{Addr: le.Uint64(text[blockAddr:])}}
	insts, points := int(le.Uint16(text[blockInsts:])), int(le.Uint16(text[blockPoints:]))
	end := align(blockHead + instSize*insts + pointSize*points)
	length := int(le.Uint16(text[blockLength:]))
	if end > len(text) || insts == 0 || length < detour.JumpSize {
		return nil
	}
	p.stub = b.addr + uint64(end)
	stub, rest := text[end:], text[blockHead:]
	for i := range insts {
		p.Ends = append(p.Ends, int(le.Uint32(rest)))
		p.copies = append(p.copies, int(le.Uint32(rest[4:])))
		// The window may contain padding after the last instruction.
		if p.Ends[i] <= p.begin(i) || p.Ends[i] > length || p.copies[i] >= len(stub) || i > 0 && p.copies[i] <= p.copies[i-1] {
			return nil
		}
		rest = rest[instSize:]
	}
	for range points {
		point := &Point{site: in.site, patch: node.Patch{Addr: le.Uint64(rest)}, at: le.Uint64(rest[8:]), change: le.Uint64(rest[16:])}
		code := span{int(le.Uint32(rest[24:])), int(le.Uint32(rest[28:]))}
		if code.begin > code.end || code.end > len(stub) || in.arenaOf(point.change) == nil || !p.begins(point.at) {
			return nil
		}
		point.adopted, point.adoptedAt = bytes.Clone(stub[code.begin:code.end]), p.stub+uint64(code.begin)
		point.late = text[blockNotes]&noteLate != 0 && point.moved()
		p.points, p.codes = append(p.points, point), append(p.codes, code)
		rest = rest[pointSize:]
	}
	p.Code = make([]byte, length)
	if text[blockNotes]&noteExclusive != 0 {
		p.exclusive = exclusiveBecause(errors.New("as the earlier monitor found"))
	}
	_, err := in.site.memory.ReadAt(p.Code, int64(p.Addr))
	p.gone = err != nil || [detour.JumpSize]byte(p.Code) != p.jump()
	copy(p.Code, text[blockOriginal:][:detour.JumpSize])
	return p
}

// arenaOf returns the arena that contains a switch, or nil.
func (in *inspection) arenaOf(change uint64) *arena {
	for _, a := range in.arenas {
		if a.owns(change) && change-a.addr >= firstSwitch {
			return a
		}
	}
	return nil
}

// checkPlaces removes places that overlap others, since two jumps never have a window in common.
func (in *inspection) checkPlaces() {
	slices.SortFunc(in.places, func(a, b *place) int { return compare(a.Addr, b.Addr) })
	end := uint64(0)
	in.places = slices.DeleteFunc(in.places, func(p *place) bool {
		if p.Addr < end || p.End() < p.Addr {
			return true
		}
		end = p.End()
		return false
	})
}

// Base returns the address and the size of the shared memory in the process.
func (s *Site) Base() (base, size uint64) { return s.base, s.shared }

// Use makes the arenas belong to the stopped process itself and not to its parent, with shared
// memory at base.
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
