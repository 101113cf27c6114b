//go:build linux && amd64

package kernel

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/branch"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
)

// Functions that are compiled for indirect branch tracking begin with a landing pad, endbr64. The kernel
// single-steps threads over it, which costs more than ten times as much as to emulate the push that usually
// follows. Every thread that reaches the push has passed the pad, unless a branch leads to the push. So if
// no branch leads there, the uprobe is set behind the pad.

// behindPad returns a site behind landing pads and nops whose instruction the kernel emulates. It returns
// false if there is none.
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

// isPad reports whether an instruction does nothing.
func isPad(code []byte) bool {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e}) { // endbr64, endbr32: see measure
		return true
	}
	inst, err := x86asm.Decode(code, 64)
	return err == nil && inst.Op == x86asm.NOP
}

// leadsTo reports whether control may reach an address other than from the instruction before. certain is
// an address before it where an instruction begins.
func (sv *survey) leadsTo(addr, certain uint64, m proc.Mapping, f *mapped) bool {
	module, err := sv.moduleOf(m, f)
	if err != nil || addr-m.Start >= module.Size {
		return true
	}
	return leads(module, addr-m.Start, certain-m.Start)
}

// leads is leadsTo for offsets in a module. The module knows the targets of all branches except short ones.
// From certain on, leads decodes instructions to find short branches. Before it, any two bytes could be
// one.
func leads(m *landing.Module, to, certain uint64) bool {
	if m.Lands(to-1, to+1) {
		return true
	}
	lowest := certain - min(certain, branch.Reach)
	if before := m.Code(lowest, certain); uint64(len(before)) < certain-lowest || branch.ShortBetween(before, lowest, to-1, to+1) {
		return true
	}
	highest := min(m.Size, to+branch.Reach)
	for at := certain; at < highest; {
		length, _ := measure(m.Code(at, at+longest))
		if length == 0 {
			rest := m.Code(at, highest)
			return uint64(len(rest)) < highest-at || branch.ShortBetween(rest, at, to-1, to+1)
		}
		inst, _ := x86asm.Decode(m.Code(at, at+longest), 64) // endbr64 is not decoded, but has no arguments either
		at += uint64(length)
		if by, ok := inst.Args[0].(x86asm.Rel); ok && at+uint64(int64(by)) == to {
			return true
		}
	}
	return false
}
