//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/branch"
	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
)

const pageSize = 0x1000

// Surveyor finds windows in a module of a process.
type Surveyor struct {
	Module *landing.Module
	Base   uint64 // where it is mapped
	// Bounds are those of the function that has an address, equal if nobody knows.
	Bounds func(addr uint64) (begin, end uint64)

	// Sharing tells that no jump may stand at the first instruction of a function, where
	// other tools set uprobes.
	Sharing bool

	functions map[uint64]*function // by begin
	depths    map[uint64]depth     // of functions in Go, by begin
}

// spot is where code can run for an address.
type spot struct {
	detour.Window
	addr  uint64 // that was asked for
	at    uint64 // the instruction it runs before
	entry bool   // a function begins there
	ends  bool   // it is left there
	// behind tells that the spot was asked for at the beginning of a function, and is behind
	// its first instruction, which moves the stack pointer down by pushed.
	behind bool
	pushed int32
	late   bool   // it is behind instructions that may fault, see later
	note   string // what whoever uses code there must know
}

// find finds the window for an address; the jump may stand before it.
func (s *Surveyor) find(addr uint64) (spot, error) {
	f, i, p, err := s.locate(addr)
	if err != nil {
		return p, err
	}
	behind, why := s.behindFirst(f, i, p, 0)
	if why == nil {
		return behind, nil
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

// locate finds the instruction that code for an address runs before.
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
		// The pad stays, for those who have to land there.
		i++
		p.at = addr + detour.LandingPad
		if s.lands(f, p.at-1, p.at+1) {
			err = fmt.Errorf("a branch leads behind its landing pad")
		}
	}
	return f, i, p, err
}

// Splits tells whether an address is inside of an instruction for certain, and where that
// begins: its function could be decoded up to there.
func (s *Surveyor) Splits(addr uint64) (begin uint64, splits bool) {
	if begin, _ := s.bounds(addr); begin == addr {
		return 0, false // looked up by far the most often
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

// farthest is how far before an instruction a jump for it is looked for.
const farthest = 32

// reach tries windows that begin with the instruction, then with those before it.
// With a former window, that of another address, it makes one that includes both.
func (s *Surveyor) reach(f *function, at int, former *detour.Window) (detour.Window, error) {
	upTo := f.insts[at].end()
	if former != nil {
		upTo = max(upTo, former.End())
		first, ok := f.at(former.Addr)
		if !ok {
			return detour.Window{}, fmt.Errorf("the code of another request stands too near")
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

// window makes the one that begins with an instruction.
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
	w.Code = s.code(w.Addr, end)
	return w, s.check(f, &w)
}

// check sees to it that nobody comes into a window but through its first
// instruction, and that a jump can be written there.
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
		return errors.New("the jump would stand at the first instruction of the function, which is left to other tools")
	case w.Whole():
	case f.indirect && s.Module.TakesOwn(f.begin-s.Base, f.end-s.Base):
		return fmt.Errorf("its function computes where it jumps to")
	}
	_, _, err := w.Copy(w.Addr)
	return err
}

// lands tells whether control may come from elsewhere behind begin, and before end.
func (s *Surveyor) lands(f *function, begin, end uint64) bool {
	if s.Module.Lands(begin-s.Base, end-s.Base) || s.leads(f, begin, end) {
		return true
	}
	return s.before(f, begin, end) || s.behind(f, begin, end)
}

// before looks for short branches in what stands before a function.
func (s *Surveyor) before(f *function, begin, end uint64) bool {
	lowest := max(s.Base, begin-min(begin, branch.Reach))
	for at := f.begin; at > lowest; {
		b, e := s.bounds(at - 1)
		if b == e {
			at--
			if s.short(at, at+2, begin, end) {
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

// behind does so with what stands behind it.
func (s *Surveyor) behind(f *function, begin, end uint64) bool {
	highest := min(s.Base+uint64(len(s.Module.Code)), end+branch.Reach)
	for at := f.end; at < highest; {
		b, e := s.bounds(at)
		if b == e {
			if s.short(at, at+2, begin, end) {
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

// leads tells whether a branch of a function leads behind begin, and before end.
func (s *Surveyor) leads(f *function, begin, end uint64) bool {
	return f.targets.Between(begin, end) || f.unknown < f.end && s.short(f.unknown, f.end, begin, end)
}

// short looks for what may be a short branch in bytes that nobody can decode.
func (s *Surveyor) short(from, to, begin, end uint64) bool {
	from, to = max(from, begin-min(begin, branch.Reach)), min(to, end+branch.Reach)
	return from < to && branch.ShortBetween(s.code(from, to), from, begin, end)
}

// code is what the file has.
func (s *Surveyor) code(begin, end uint64) []byte {
	n := uint64(len(s.Module.Code))
	return s.Module.Code[min(n, begin-s.Base):min(n, end-s.Base)]
}

// bounds are those of a function by the unwind tables or, where it has none, by
// the symbols.
func (s *Surveyor) bounds(addr uint64) (begin, end uint64) {
	if begin, end = s.Bounds(addr); begin != end {
		return begin, end
	}
	b, e := s.Module.Bounds(addr - s.Base)
	return b + s.Base, e + s.Base
}

func (s *Surveyor) function(addr uint64) (*function, error) {
	begin, end := s.bounds(addr)
	if begin == end || begin < s.Base {
		return nil, fmt.Errorf("it is not known in which function it is")
	}
	return s.decoded(begin, end), nil
}

// decoded is the function within bounds that are known.
func (s *Surveyor) decoded(begin, end uint64) *function {
	if f := s.functions[begin]; f != nil {
		return f
	}
	f := decodeFunction(begin, s.code(begin, end))
	if s.functions == nil {
		s.functions = make(map[uint64]*function)
	}
	s.functions[begin] = f
	return f
}

// isPadding tells whether nothing but padding stands between two addresses, the
// first of which no instruction goes on to.
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

// paddingLength is the length of a nop or an int3, 0 of all else.
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
