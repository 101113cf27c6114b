//go:build linux && amd64

package patch

import (
	"errors"
	"slices"
	"sort"

	"mirador/omis/code/x86/detour"
	"mirador/omis/node"
)

// Small Go functions without a check of the stack often begin with an instruction that reads memory
// through a pointer argument. Go makes a panic of its fault, and for this the instruction must keep
// its address. Code for the beginning of such a function runs after the instruction, and does not
// run if the instruction faults; the placement reports this.

// lateNote tells users which calls are missed by code that runs after the first instructions of a
// Go function.
const lateNote = "a call that panics in the first instructions of the function, for instance for a nil pointer, is not counted, since the jump is after them"

// mostSkipped limits the instructions before such code.
const mostSkipped = 6

// later returns a spot for code at the beginning of a Go function, after the i-th instruction or a
// few more, and the index of the instruction there.
func (s *Surveyor) later(f *function, i int, p spot, reads node.Arguments) (spot, int, error) {
	switch {
	case !s.Module.InGo(f.begin-s.Base) || s.Module.Goroutines == nil:
		return p, i, errors.New("it is not of a program in Go with symbols")
	case reads != 0:
		return p, i, errors.New("the probe reads arguments")
	case i > 0 || s.checksStack(f):
		return p, i, errors.New("its function checks the stack")
	case f.indirect && s.Module.TakesOwn(f.begin-s.Base, f.end-s.Base):
		return p, i, errors.New("its function computes where it jumps to")
	}
	flags, below := false, false
	for end := min(i+mostSkipped, len(f.insts)-1); i < end; {
		if f.insts[i].leaves || f.insts[i].waits || f.insts[i].pad {
			break
		}
		inst, err := detour.Decode(s.code(f.insts[i].addr, f.insts[i].end()))
		if err != nil {
			return p, i, err
		}
		e, err := effectsOf(inst, 0)
		if err != nil {
			return p, i, err
		}
		i++
		flags, below, p.pushed = flags || e.flags, below || e.below, p.pushed+e.pushed
		at := f.insts[i].addr
		if s.lands(f, at-1, at+1) {
			return p, i, errors.New("a branch may lead to the code after its first instructions")
		}
		if w, err := s.window(f, i, f.insts[i].end()); err == nil {
			p.Window, p.at, p.afterFirst, p.late, p.ends = w, at, true, true, f.insts[i].ends
			p.entry = p.entry && !below && (!flags || s.flagsUnused(f, i))
			return p, i, nil
		}
	}
	return p, i, errors.New("there is no room for a jump after its first instructions")
}

// leadIn is a range of addresses in a function between its first instruction and new code. A thread
// that is there must not execute the code, since it entered the function before. The bounds are the
// first and the last address.
type leadIn struct {
	first, last uint64
	*change
}

// leadIns returns the lead-ins of some changes, in ascending order.
func (b *Batch) leadIns(some []*change) (list []leadIn) {
	for _, c := range some {
		for _, p := range b.freshOf(c) {
			if p.late {
				list = append(list, leadIn{p.patch.Addr + 1, p.at, c})
			}
		}
	}
	slices.SortFunc(list, func(a, b leadIn) int { return compare(a.last, b.last) })
	return list
}

// changeAhead returns the change whose code a thread at an address will reach, or nil.
func changeAhead(list []leadIn, addr uint64) *change {
	i := sort.Search(len(list), func(i int) bool { return list[i].last >= addr })
	if i < len(list) && list[i].first <= addr {
		return list[i].change
	}
	return nil
}
