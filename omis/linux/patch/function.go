//go:build linux && amd64

package patch

import (
	"slices"
	"sort"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/branch"
	"mirador/omis/code/x86/detour"
)

// function is a function of the program, as far as it could be decoded.
type function struct {
	begin, end uint64
	insts      []instruction
	targets    branch.Targets // targets of its direct branches except calls
	indirect   bool           // it has a jump through a register or memory
	unknown    uint64         // the first address that could not be decoded, or end
}

type instruction struct {
	addr    uint64
	length  int
	leaves  bool // execution does not continue after it, or not at once
	returns bool // it is a call, so execution continues after it later
	waits   bool // it is a system call
	ends    bool // it returns from the function
	pad     bool // it is a landing pad for indirect branches
}

func (i *instruction) end() uint64 { return i.addr + uint64(i.length) }

func decodeFunction(begin uint64, code []byte) *function {
	f := &function{begin: begin, end: begin + uint64(len(code))}
	at := begin
	for at < f.end {
		rest := code[at-begin:]
		if detour.IsLandingPad(rest) {
			f.insts = append(f.insts, instruction{addr: at, length: detour.LandingPad, pad: true})
			at += detour.LandingPad
			continue
		}
		inst, err := detour.Decode(rest)
		if err != nil {
			break
		}
		f.add(at, inst)
		at += uint64(inst.Len)
	}
	f.unknown = at
	slices.Sort(f.targets)
	return f
}

func (f *function) add(at uint64, inst x86asm.Inst) {
	i := instruction{
		addr: at, length: inst.Len,
		leaves: detour.Leaves(inst), returns: inst.Op == x86asm.CALL || inst.Op == x86asm.LCALL, waits: detour.Calls(inst),
		ends: inst.Op == x86asm.RET,
	}
	if rel, ok := inst.Args[0].(x86asm.Rel); ok {
		if !i.returns {
			f.targets = append(f.targets, i.end()+uint64(int64(rel)))
		}
	} else if inst.Op == x86asm.JMP {
		f.indirect = true
	}
	f.insts = append(f.insts, i)
}

// at returns the index of the instruction that begins at an address.
func (f *function) at(addr uint64) (i int, ok bool) {
	return sort.Find(len(f.insts), func(i int) int { return int(int64(addr - f.insts[i].addr)) })
}
