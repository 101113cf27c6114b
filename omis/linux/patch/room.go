//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/detour"
)

// A Go function that begins with a check of the stack leaves room below its frame for the functions
// that it calls. Functions without a check (leaves with small frames, nosplit) share that room, and
// Go's linker makes sure that no chain of their calls needs more. The linker does not know our
// code. This file finds out how much of the room is left where a function without a check is
// called. Like the linker, it assumes that calls through a register or memory lead from, and to,
// functions that check the stack.

const (
	// granted is the least room that a check leaves in any version of Go since 1.9. It is 800 bytes
	// now (abi.StackNosplitBase), and was less before Go 1.17.
	granted = 752
	// needed is the most stack that our code uses.
	needed = 256
	// returnAddress is the stack that a call uses.
	returnAddress = 8
)

// hasRoom tells why a function may have too little room on the stack for our code.
func (s *Surveyor) hasRoom(f *function) error {
	used, err := s.depth(f)
	if err != nil {
		return fmt.Errorf("there may be too little room on the stack of a goroutine: %w", err)
	}
	own, err := s.frame(f)
	if err != nil && !s.checksStack(f) {
		return fmt.Errorf("there may be too little room on the stack of a goroutine: %w", err)
	}
	if !s.checksStack(f) && used+own+needed > granted {
		return fmt.Errorf("there may be too little room on the stack of a goroutine: functions that do not check it take %d bytes of %d", used+own, granted)
	}
	return nil
}

// depth returns the most room that can be used when a function begins.
func (s *Surveyor) depth(f *function) (int, error) {
	if s.checksStack(f) {
		return 0, nil
	}
	if d, ok := s.depths[f.begin]; ok {
		return d.bytes, d.err
	}
	if s.depths == nil {
		s.depths = make(map[uint64]depth)
	}
	s.depths[f.begin] = depth{err: errors.New("functions that do not check it call each other")}
	var d depth
	d.bytes, d.err = s.deepest(f)
	s.depths[f.begin] = d
	return d.bytes, d.err
}

// depth is the cached result of Surveyor.depth.
type depth struct {
	bytes int
	err   error
}

// deepest returns the maximum over all callers of a function.
func (s *Surveyor) deepest(f *function) (most int, err error) {
	if s.shortTo(f) {
		return 0, errors.New("a short branch may lead to its function")
	}
	callers, ok := s.Module.Branches(f.begin - s.Base)
	if !ok {
		return 0, errors.New("the file of its program can no longer be read")
	}
	for _, from := range callers {
		n, err := s.taken(f, s.Base+from)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return max(most, returnAddress), nil
}

// shortTo reports whether a short branch from another function may lead to f.
func (s *Surveyor) shortTo(f *function) bool {
	return s.before(f, f.begin-1, f.begin+1) || s.after(f, f.begin-1, f.begin+1)
}

// taken returns how much room is used when the branch at an address leads to a function; 0 if there
// is no such branch.
func (s *Surveyor) taken(f *function, from uint64) (int, error) {
	begin, end := s.bounds(from)
	if begin == end || begin < s.Base {
		return 0, nil // never executed, since all Go functions have symbols
	}
	caller := s.decoded(begin, end)
	i, begins := caller.at(from)
	switch {
	case !begins && from < caller.unknown:
		return 0, nil // not a branch: the address is inside an instruction
	case begins && begin == f.begin && !caller.insts[i].returns:
		return 0, nil // a loop
	case begins && s.growsStack(caller, i):
		return 0, errors.New("its function is called where a check of the stack has failed")
	case s.checksStack(caller):
		return returnAddress, nil
	}
	used, err := s.depth(caller)
	if err != nil {
		return 0, err
	}
	own, err := s.frame(caller)
	return used + own + returnAddress, err
}

// longestGrow limits the instructions after the call that grows the stack: they load the arguments
// again and jump to the beginning of the function.
const longestGrow = 40

// growsStack reports whether the i-th instruction of a function is the call that grows the stack,
// which is followed by a jump to the beginning of the function.
func (s *Surveyor) growsStack(f *function, i int) bool {
	if !f.insts[i].returns || !s.checksStack(f) {
		return false
	}
	for _, next := range f.insts[i+1 : min(i+1+longestGrow, len(f.insts))] {
		inst, err := detour.Decode(s.code(next.addr, next.end()))
		if err != nil {
			return false
		}
		if to, direct := inst.Args[0].(x86asm.Rel); direct && inst.Op == x86asm.JMP {
			return next.end()+uint64(int64(to)) == f.begin
		}
		if next.leaves {
			return false
		}
	}
	return false
}

// longestCheck limits the instructions of a check of the stack.
const longestCheck = 8

// checksStack reports whether a function begins with a check of the stack.
func (s *Surveyor) checksStack(f *function) bool {
	compared := false
	for i := range f.insts[:min(longestCheck, len(f.insts))] {
		inst, err := detour.Decode(s.code(f.insts[i].addr, f.insts[i].end()))
		if err != nil {
			return false
		}
		switch inst.Op {
		case x86asm.CMP:
			compared = compared || comparesLimit(inst)
		case x86asm.JBE:
			return compared
		case x86asm.MOV, x86asm.LEA, x86asm.SUB, x86asm.JB, x86asm.JE:
			if movesStack(inst) {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// frame returns the most bytes by which a function moves the stack pointer down.
func (s *Surveyor) frame(f *function) (bytes int, err error) {
	if f.unknown < f.end {
		return 0, fmt.Errorf("the instruction at %#x is not known", f.unknown)
	}
	for i := range f.insts {
		if f.insts[i].pad {
			continue
		}
		inst, err := detour.Decode(s.code(f.insts[i].addr, f.insts[i].end()))
		if err != nil {
			return 0, err
		}
		n, known := movesDown(inst)
		if !known {
			return 0, fmt.Errorf("the function at %#x changes its stack", f.begin)
		}
		bytes += n
	}
	return bytes, nil
}

// movesDown returns the bytes by which an instruction moves the stack pointer down. It returns 0
// for an instruction that restores the stack pointer.
func movesDown(inst x86asm.Inst) (bytes int, known bool) {
	switch inst.Op {
	case x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ:
		return 8, true
	case x86asm.POP:
		return 0, !isStack(inst.Args[0])
	case x86asm.POPF, x86asm.POPFD, x86asm.POPFQ, x86asm.LEAVE, x86asm.INT, x86asm.UD2, x86asm.UD1, x86asm.HLT:
		return 0, true
	}
	if !movesStack(inst) {
		return 0, true
	}
	switch by := inst.Args[1].(type) {
	case x86asm.Imm:
		switch inst.Op {
		case x86asm.SUB:
			return max(0, int(by)), true
		case x86asm.ADD:
			return max(0, -int(by)), true
		}
	case x86asm.Mem:
		if inst.Op == x86asm.LEA && by.Base == x86asm.RSP && by.Index == 0 {
			return max(0, -int(by.Disp)), true
		}
	}
	return 0, false
}
