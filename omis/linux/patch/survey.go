//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/branch"
	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
)

const pageSize = 0x1000

// Surveyor finds windows in one module of a process.
type Surveyor struct {
	Module *landing.Module
	Base   uint64 // address at which the module is mapped
	// Bounds returns the bounds of the function that contains an address, equal values if they are
	// unknown.
	Bounds func(addr uint64) (begin, end uint64)

	// Sharing forbids jumps at the first instruction of a function, where other tools set uprobes.
	Sharing bool

	functions map[bounds]*function // as far as the unwind tables and the symbols bound them: these may differ
	depths    map[uint64]depth     // of Go functions, by their beginning
	known     map[uint64]bounds    // of functions, by the addresses asked for: neighbours ask for the same
	seconds   map[uint64]second    // by the beginnings of functions: a place is judged before code is put there
}

// Forget drops the functions that were decoded, which take memory.
func (s *Surveyor) Forget() { s.functions, s.known, s.seconds = nil, nil, nil }

// Decoded returns how many functions were decoded since Forget.
func (s *Surveyor) Decoded() int { return len(s.functions) }

// second is the spot after the first instruction of a function, for code that reads no arguments.
type second struct {
	spot
	err error // why code must run before that instruction
}

// bounds are those of a function, equal if they are unknown.
type bounds struct{ begin, end uint64 }

// spot is a place where code for an address can run.
type spot struct {
	detour.Window
	addr  uint64 // the requested address
	at    uint64 // address of the instruction before which the code runs
	entry bool   // a function begins at addr
	ends  bool   // the instruction returns from the function
	// afterFirst reports that addr is the beginning of a function, and that the code runs after the
	// first instruction, which moves the stack pointer down by pushed.
	afterFirst bool
	pushed     int32
	late       bool   // the code runs after instructions that may fault; see Surveyor.later
	note       string // what users must know about code there
}

// find returns the spot for an address. The jump may begin before the address.
func (s *Surveyor) find(addr uint64) (spot, error) {
	f, i, p, err := s.locate(addr)
	if err != nil {
		return p, err
	}
	after, why := s.afterFirst(f, i, p, 0)
	if why == nil {
		return after, nil
	}
	p.Window, err = s.reach(f, i, nil)
	if err == nil {
		p.note = s.exclusive(&p.Window, why)
		return p, nil
	}
	if late, _, e := s.later(f, i, p, 0); e == nil {
		late.note = lateNote
		return late, nil
	}
	return p, err
}

// locate returns the function of an address and the instruction before which code for the address runs.
func (s *Surveyor) locate(addr uint64) (f *function, i int, p spot, err error) {
	p = spot{addr: addr, at: addr}
	if f, err = s.function(addr); err != nil {
		return f, i, p, err
	}
	p.entry = s.Module.IsEntry(addr - s.Base)
	i, ok := f.at(addr)
	switch {
	case !ok:
		err = fmt.Errorf("no instruction is known to begin there")
	case !f.insts[i].pad:
		p.ends = f.insts[i].ends
	case i+1 == len(f.insts):
		err = fmt.Errorf("its function has nothing but a landing pad")
	default:
		// The pad stays in the program, because indirect branches must land on it.
		i++
		p.at = addr + detour.LandingPad
		if s.lands(f, p.at-1, p.at+1) {
			err = fmt.Errorf("a branch leads to the code after its landing pad")
		}
	}
	return f, i, p, err
}

// Splits reports whether an address is certainly inside an instruction, and returns the beginning
// of the instruction. The function must have been decoded up to there.
func (s *Surveyor) Splits(addr uint64) (begin uint64, splits bool) {
	if begin, _ := s.bounds(addr); begin == addr {
		return 0, false // by far the most frequent case
	}
	f, err := s.function(addr)
	if err != nil || addr >= f.unknown {
		return 0, false
	}
	i, begins := f.at(addr)
	if begins || i == 0 {
		return 0, false
	}
	return f.insts[i-1].addr, true
}

// farthest is the greatest distance of a jump before its instruction.
const farthest = 32

// reach returns a window that contains an instruction: it tries the window that begins there, then
// earlier ones. If former, the window of another address, is given, the result includes both.
func (s *Surveyor) reach(f *function, at int, former *detour.Window) (detour.Window, error) {
	upTo := f.insts[at].end()
	if former != nil {
		upTo = max(upTo, former.End())
		first, ok := f.at(former.Addr)
		if !ok {
			return detour.Window{}, fmt.Errorf("the code of another request is too near")
		}
		return s.window(f, min(first, at), upTo)
	}
	w, err := s.window(f, at, upTo)
	for i := at - 1; err != nil && i >= 0 && f.insts[i].addr+farthest > f.insts[at].addr && !f.insts[i].leaves; i-- {
		if earlier, e := s.window(f, i, upTo); e == nil {
			return earlier, nil
		}
	}
	return w, err
}

// window returns the window that begins with the instruction first and extends at least to upTo.
func (s *Surveyor) window(f *function, first int, upTo uint64) (detour.Window, error) {
	w := detour.Window{Addr: f.insts[first].addr}
	end, last := w.Addr, first
	for upTo = max(upTo, w.Addr+detour.JumpSize); end < upTo; last++ {
		if last == len(f.insts) || last > first && f.insts[last-1].leaves {
			break
		}
		i := &f.insts[last]
		switch {
		case i.pad:
			return w, fmt.Errorf("an indirect jump may come to %#x", i.addr)
		case i.waits:
			return w, fmt.Errorf("a thread may be waiting in the system call at %#x", i.addr)
		}
		end = i.end()
		w.Ends = append(w.Ends, int(end-w.Addr))
	}
	if end < upTo {
		before := &f.insts[last-1]
		switch {
		case last == len(f.insts) && !before.leaves && f.unknown < f.end:
			return w, fmt.Errorf("the instruction at %#x is not known", f.unknown)
		case !before.leaves || before.returns || !s.isPadding(f, end, upTo):
			return w, fmt.Errorf("execution leaves the function within its %d bytes", detour.JumpSize)
		}
		end = upTo
	}
	if w.Code = slices.Clone(s.code(w.Addr, end)); w.End() < end {
		return w, errors.New("the file of its program can no longer be read")
	}
	return w, s.check(f, &w)
}

// check makes sure that control enters a window only at its first instruction, and that a jump can
// be written there.
func (s *Surveyor) check(f *function, w *detour.Window) error {
	if s.Module.InGo(w.Addr - s.Base) {
		if err := s.checkGo(f, w); err != nil {
			return err
		}
	}
	switch {
	case w.Addr%pageSize > pageSize-detour.JumpSize:
		return fmt.Errorf("the jump would lie in two pages, which are not written at once")
	case s.lands(f, w.Addr, w.End()):
		return fmt.Errorf("a branch may lead into its middle")
	case s.Sharing && s.exclusive(w, nil) != "":
		return errors.New("the jump would be at the first instruction of the function, which is left to other tools")
	case w.Whole():
	case f.indirect && s.Module.TakesOwn(f.begin-s.Base, f.end-s.Base):
		return fmt.Errorf("its function computes where it jumps to")
	}
	_, _, err := w.Copy(w.Addr)
	return err
}

// lands reports whether a branch may lead to an address between begin and end, both excluded.
func (s *Surveyor) lands(f *function, begin, end uint64) bool {
	if s.Module.Lands(begin-s.Base, end-s.Base) || s.leads(f, begin, end) {
		return true
	}
	return s.before(f, begin, end) || s.after(f, begin, end)
}

// before looks for short branches in the code before a function.
func (s *Surveyor) before(f *function, begin, end uint64) bool {
	lowest := max(s.Base, begin-min(begin, branch.Reach))
	for at := f.begin; at > lowest; {
		b, e := s.bounds(at - 1)
		if b == e {
			at--
			if s.strays(f, at, begin, end) {
				return true
			}
			continue
		}
		if b < s.Base || s.leads(s.decoded(b, e), begin, end) {
			return true
		}
		at = b
	}
	return false
}

// after looks for short branches in the code after a function.
func (s *Surveyor) after(f *function, begin, end uint64) bool {
	highest := min(s.Base+s.Module.Size, end+branch.Reach)
	for at := f.end; at < highest; {
		b, e := s.bounds(at)
		if b == e {
			if s.strays(f, at, begin, end) {
				return true
			}
			at++
			continue
		}
		if b < s.Base || s.leads(s.decoded(b, e), begin, end) {
			return true
		}
		at = e
	}
	return false
}

// leads reports whether a branch of a function may lead to an address between begin and end, both
// excluded.
func (s *Surveyor) leads(f *function, begin, end uint64) bool {
	return f.targets.Between(begin, end) || f.unknown < f.end && s.short(f.unknown, f.end, begin, end)
}

// short reports whether bytes that could not be decoded may contain a short branch to an address
// between begin and end.
func (s *Surveyor) short(from, to, begin, end uint64) bool {
	from, to = max(from, begin-min(begin, branch.Reach)), min(to, end+branch.Reach)
	return from < to && branch.ShortBetween(s.code(from, to), from, begin, end)
}

// strays reports whether two bytes outside of functions may be a short branch to an address between begin and end in
// f. They are none if it would lead into the middle of an instruction of f: in the start-up code of every C program
// a jump through a register and a nop, ff e0 66, look like one.
func (s *Surveyor) strays(f *function, at, begin, end uint64) bool {
	two := s.code(at, at+2)
	if !branch.ShortBetween(two, at, begin, end) {
		return false
	}
	to := at + 2 + uint64(int64(int8(two[1])))
	_, begins := f.at(to)
	return begins || to < f.begin || to >= f.unknown
}

// code returns the content of the file.
func (s *Surveyor) code(begin, end uint64) []byte { return s.Module.Code(begin-s.Base, end-s.Base) }

// bounds returns the bounds of a function according to the unwind tables or, if these have none, to
// the symbols. They are unknown if both disagree.
func (s *Surveyor) bounds(addr uint64) (begin, end uint64) {
	b, ok := s.known[addr]
	if !ok {
		if b.begin, b.end = s.Bounds(addr); b.begin == b.end {
			b.begin, b.end = s.Module.Bounds(addr - s.Base)
			b.begin, b.end = b.begin+s.Base, b.end+s.Base
			if s.contradicted(b) {
				b = bounds{}
			}
		}
		if s.known == nil {
			s.known = make(map[uint64]bounds)
		}
		s.known[addr] = b
	}
	return b.begin, b.end
}

// contradicted reports whether the unwind tables have a function that begins within a function of the symbols, whose
// beginning they do not know. The symbol is wrong then, and decoding from it could miss the beginning of that function, so
// that a jump would be written over it.
func (s *Surveyor) contradicted(b bounds) bool {
	const longest = 15 // of an instruction
	if b.begin == b.end {
		return false
	}
	for at := b.begin; at < min(b.begin+longest, b.end); at++ {
		if begin, end := s.Bounds(at); begin != end {
			return true
		}
	}
	begin, end := s.Bounds(b.end - 1)
	return begin != end
}

func (s *Surveyor) function(addr uint64) (*function, error) {
	begin, end := s.bounds(addr)
	if begin == end || begin < s.Base {
		return nil, fmt.Errorf("it is not known in which function it is")
	}
	return s.decoded(begin, end), nil
}

// decoded returns the function with the given bounds.
func (s *Surveyor) decoded(begin, end uint64) *function {
	at := bounds{begin, end}
	if f := s.functions[at]; f != nil {
		return f
	}
	f := decodeFunction(begin, s.code(begin, end))
	if s.functions == nil {
		s.functions = make(map[bounds]*function)
	}
	s.functions[at] = f
	return f
}

// isPadding reports whether there is only padding between two addresses. No instruction continues
// to the first.
func (s *Surveyor) isPadding(f *function, begin, end uint64) bool {
	for at := begin; at < end; {
		if at >= f.end {
			if b, e := s.bounds(at); b != e {
				return false
			}
		}
		n := paddingLength(s.code(at, at+maxPadding))
		if n == 0 {
			return false
		}
		at += uint64(n)
	}
	return true
}

const maxPadding = 15

// paddingLength returns the length of a nop or an int3, and 0 for other code.
func paddingLength(code []byte) int {
	const int3, nop, operandSize = 0xcc, 0x90, 0x66
	if len(code) == 0 || code[0] == int3 {
		return min(len(code), 1)
	}
	for i, b := range code {
		if b == nop {
			return i + 1
		}
		if b != operandSize {
			break
		}
	}
	inst, err := detour.Decode(code)
	if err != nil || inst.Op != x86asm.NOP {
		return 0
	}
	return inst.Len
}
