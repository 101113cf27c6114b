//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"

	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/program"
)

// trampoline is the name of the mapping that serves uprobes at nops of five bytes, from Linux 6.18 on: the
// kernel replaces the nop by a call of it.
const trampoline = "[uprobes-trampoline]"

// hasUprobe reports whether another tool has a uprobe at a site whose code differs from the file. The
// kernel serves any number of uprobes at an address. A debugger's breakpoint looks the same. If we set a uprobe
// there, the debugger would no longer get its hits. So hasUprobe returns false if a debugger traces the process.
func (s *site) hasUprobe(sv *survey) bool {
	return (s.isTrapped(sv) || s.isCall(sv)) && !proc.IsTracedByOther(sv.pid)
}

// isCall reports whether the kernel has replaced a nop by a call.
func (s *site) isCall(sv *survey) bool {
	const call, length = 0xe8, 5
	var now [length]byte
	if len(s.code) != length || !isPad(s.code) || sv.memory.at(now[:], s.addr) < length || now[0] != call {
		return false
	}
	m, ok := sv.maps.At(s.addr + length + uint64(int64(int32(binary.LittleEndian.Uint32(now[1:])))))
	return ok && m.Path == trampoline
}

// nopLength is the length of the nops that the kernel replaces by calls.
const nopLength = 5

// spoils reports why a uprobe at a site could overwrite data that its function has in the red zone, below
// the stack pointer: the kernel may replace a nop there by a call, which pushes a return address
// (uprobe.CheckNop). At its beginning a function has no data there.
func (sv *survey) spoils(s *site) error {
	if len(s.code) != nopLength || !isPad(s.code) || sv.nops == nil || sv.isFirst(s.asked) {
		return nil
	}
	if err := sv.nops(); err != nil {
		return &program.Refusal{Why: fmt.Sprintf("a uprobe on the nop at %#x, inside of a function, could change the function's results: %v", s.addr, err)}
	}
	return nil
}

// isFirst reports whether a function certainly begins at an address.
func (sv *survey) isFirst(addr uint64) bool {
	m, ok := sv.maps.At(addr)
	if !ok {
		return false
	}
	module, err := sv.moduleOf(m, sv.files[m.Start])
	if err != nil {
		return false
	}
	at := addr - m.Start
	begin, end := module.Bounds(at)
	return (begin == end || begin == at) && module.IsEntry(at)
}

// moduleOf returns the module of a mapped file.
func (sv *survey) moduleOf(m proc.Mapping, f *mapped) (_ *landing.Module, err error) {
	if f.module == nil {
		f.module, err = sv.codes.Of(sv.pid, m)
	}
	return f.module, err
}
