//go:build linux && amd64

package rendezvous

// Stands tells whether a jump is at a place.
func (s *Site) Stands(addr uint64) bool {
	p := s.places[addr]
	return p != nil && p.stands
}

// Patch is what stands at a place: the jump, and what it has displaced there.
type Patch struct {
	Addr            uint64
	Jump, Displaced []byte
}

// PatchAt is the patch of a place that was prepared.
func (s *Site) PatchAt(addr uint64) Patch {
	p := s.places[addr]
	j := p.jump()
	return Patch{addr, j[:], p.Code[:jumpSize]}
}

// Standing lists the places where jumps stand.
func (s *Site) Standing() []uint64 {
	var all []uint64
	for addr, p := range s.places {
		if p.stands {
			all = append(all, addr)
		}
	}
	return all
}

// Covering lists the places with jumps that displace something of a range.
func (s *Site) Covering(addr, length uint64) []uint64 {
	var all []uint64
	for at, p := range s.places {
		if p.stands && at < addr+length && addr < at+uint64(len(p.Code)) {
			all = append(all, at)
		}
	}
	return all
}

// Moved is where a thread has to go on that is stopped inside a place that was
// prepared; ok is false for all others.
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

// copyAt is where the copy of the i-th displaced instruction is.
func (p *place) copyAt(i int) uint64 { return p.stub + stubCopy + uint64(p.moved[i]) }

// Copy is where a thread goes on that was held at a place.
func (s *Site) Copy(addr uint64) uint64 { return s.places[addr].copyAt(0) }

// PlaceOf is the place whose stub has a program counter.
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

// Leads gives for an address in a stub the one in the program behind the place, where a
// thread there comes out.
func (s *Site) Leads(pc uint64) (to uint64, ok bool) {
	addr, ok := s.PlaceOf(pc)
	if !ok {
		return 0, false
	}
	return s.places[addr].End(), true
}

// InPlace gives for an address in the copies of displaced instructions the one it
// stands for in the program; ok is false for all others.
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
			case pc > at: // in the middle of what stands for one instruction
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

// Contains tells whether a thread at pc is in our code.
func (s *Site) Contains(pc uint64) bool {
	for _, a := range s.arenas {
		if a.contains(pc) {
			return true
		}
	}
	return false
}

// Holding tells whether a thread at pc is on its way into a hold, in it, or on its
// way out.
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

// Unpatched puts into code, read at addr, the program's own bytes where jumps
// stand.
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
