//go:build linux && amd64

package kernel

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/branch"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
)

// Functions that were compiled for indirect branch tracking begin with a landing pad,
// endbr64, which the kernel steps over although it does nothing, at more than ten times
// the cost of the push behind it. Whoever comes to that push came by the pad, unless a
// branch leads there. So the uprobe stands behind the pad where that makes it cheaper
// and nothing leads there.

// behindPad finds a cheaper place for the uprobe of a site behind landing pads and long
// nops, if nothing else is before it; false: there is none.
func (sv *survey) behindPad(first site, m proc.Mapping, f *mapped) (site, bool) {
	at := first
	for !at.quick {
		if !isPad(at.code) {
			return site{}, false
		}
		length := uint64(len(at.code))
		at.addr, at.offset = at.addr+length, at.offset+length
		if at.addr >= m.End || at.compare(sv, f) != nil || sv.spoils(&at) != nil || sv.leadsTo(at.addr, first.addr, m, f) {
			return site{}, false
		}
	}
	return at, true
}

// isPad tells whether an instruction does nothing at all.
func isPad(code []byte) bool {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e}) { // endbr64, endbr32: see measure
		return true
	}
	inst, err := x86asm.Decode(code, 64)
	return err == nil && inst.Op == x86asm.NOP
}

// leadsTo tells whether control may come to an address other than from the instruction
// before. It is behind one where an instruction begins for certain.
func (sv *survey) leadsTo(addr, certain uint64, m proc.Mapping, f *mapped) bool {
	module, err := sv.moduleOf(m, f)
	if err != nil || addr-m.Start >= uint64(len(module.Code)) {
		return true
	}
	return leads(module, addr-m.Start, certain-m.Start)
}

// leads is leadsTo by places in a module. This knows of all but short branches; those
// from before what is certain are looked for in any two bytes.
func leads(m *landing.Module, to, certain uint64) bool {
	if m.Lands(to-1, to+1) {
		return true
	}
	lowest := certain - min(certain, branch.Reach)
	if branch.ShortBetween(m.Code[lowest:certain], lowest, to-1, to+1) {
		return true
	}
	highest := min(uint64(len(m.Code)), to+branch.Reach)
	for at := certain; at < highest; {
		length, _ := measure(m.Code[at:])
		if length == 0 {
			return branch.ShortBetween(m.Code[at:highest], at, to-1, to+1)
		}
		inst, _ := x86asm.Decode(m.Code[at:], 64) // nothing comes of an endbr64
		at += uint64(length)
		if by, ok := inst.Args[0].(x86asm.Rel); ok && at+uint64(int64(by)) == to {
			return true
		}
	}
	return false
}
