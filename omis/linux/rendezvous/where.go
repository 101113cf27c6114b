//go:build linux && amd64

package rendezvous

// Stands reports whether a place has a jump.
func (s *Site) Stands(addr uint64) bool {
	p := s.places[addr]
	return p != nil && p.stands
}

// Patch is the jump at a place and the bytes that it displaced.
type Patch struct {
	Addr            uint64
	Jump, Displaced []byte
}

// PatchAt returns the patch of a place that was prepared.
func (s *Site) PatchAt(addr uint64) Patch {
	p := s.places[addr]
	j := p.jump()
	return Patch{addr, j[:], p.Code[:jumpSize]}
}

// Standing lists the places that have jumps.
func (s *Site) Standing() []uint64 {
	var all []uint64
	for addr, p := range s.places {
		if p.stands {
			all = append(all, addr)
		}
	}
	return all
}

// Covering lists the places whose jumps displace instructions of a range.
func (s *Site) Covering(addr, length uint64) []uint64 {
	var all []uint64
	for at, p := range s.places {
		if p.stands && at < addr+length && addr < at+uint64(len(p.Code)) {
			all = append(all, at)
		}
	}
	return all
}

// Moved returns the address at which a thread must continue that is stopped inside a
// place that was prepared; ok is false for all other threads.
func (s *Site) Moved(pc uint64) (to uint64, ok bool) {
	for _, p := range s.places {
		if !p.Inside(pc) {
			continue
		}
		for i, end := range p.Ends[:len(p.Ends)-1] {
			if pc == p.Addr+uint64(end) {
				return p.copyAt(i + 1), true
			}
		}
	}
	return 0, false
}

// copyAt returns the address of the copy of the i-th displaced instruction.
func (p *place) copyAt(i int) uint64 { return p.stub + stubCopy + uint64(p.moved[i]) }

// Copy returns the address at which a thread continues that was held at a place.
func (s *Site) Copy(addr uint64) uint64 { return s.places[addr].copyAt(0) }

// PlaceOf returns the place whose stub contains pc.
func (s *Site) PlaceOf(pc uint64) (addr uint64, ok bool) {
	if !s.Contains(pc) {
		return 0, false
	}
	for _, p := range s.places {
		if pc >= p.stub && pc < p.stub+stubSize {
			return p.Addr, true
		}
	}
	return 0, false
}

// Leads returns the address after the place at which a thread leaves the stub that
// contains pc.
func (s *Site) Leads(pc uint64) (to uint64, ok bool) {
	addr, ok := s.PlaceOf(pc)
	if !ok {
		return 0, false
	}
	return s.places[addr].End(), true
}

// InPlace returns the address in the program that corresponds to an address in the copies
// of displaced instructions; ok is false for all other addresses.
func (s *Site) InPlace(pc uint64) (at uint64, ok bool) {
	if !s.Contains(pc) {
		return 0, false
	}
	for _, p := range s.places {
		if pc < p.stub+stubCopy || pc >= p.stub+stubSize {
			continue
		}
		for i := len(p.Ends) - 1; i >= 0; i-- {
			switch at := p.copyAt(i); {
			case pc > at: // in the middle of the copy of one instruction
				return p.Addr + uint64(p.Ends[i]), true
			case pc == at && i == 0:
				return p.Addr, true
			case pc == at:
				return p.Addr + uint64(p.Ends[i-1]), true
			}
		}
	}
	return 0, false
}

// Contains reports whether pc is in an arena.
func (s *Site) Contains(pc uint64) bool {
	for _, a := range s.arenas {
		if a.contains(pc) {
			return true
		}
	}
	return false
}

// Holding reports whether a thread at pc enters, is in, or leaves a hold.
func (s *Site) Holding(pc uint64) bool {
	for _, a := range s.arenas {
		if !a.contains(pc) {
			continue
		}
		if pc < a.addr+arenaStubs {
			return true
		}
		in := (pc - a.addr - arenaStubs) % stubSize
		return in < stubCopy
	}
	return false
}

// Unpatched restores the program's own bytes at jumps in code, which was read at addr.
func (s *Site) Unpatched(addr uint64, code []byte) {
	for _, p := range s.places {
		if !p.stands {
			continue
		}
		for i, b := range p.Code[:jumpSize] {
			if at := p.Addr + uint64(i) - addr; at < uint64(len(code)) {
				code[at] = b
			}
		}
	}
}
