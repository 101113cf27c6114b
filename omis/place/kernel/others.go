//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"

	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/program"
)

// trampoline is the name of the memory in which the kernel (Linux 6.18 and later) serves
// uprobes on nops of five bytes: the nop becomes a call.
const trampoline = "[uprobes-trampoline]"

// hasUprobe reports whether a uprobe of another tool stands at a site whose code is not what
// its file has. The kernel serves any number of uprobes at an address. A breakpoint of a
// debugger looks the same, but the kernel would take it for its own and the debugger would
// never see a hit: so the process must not be traced.
func (s *site) hasUprobe(sv *survey) bool {
	return (s.isTrapped(sv) || s.isCall(sv)) && !proc.IsTracedByOther(sv.pid)
}

// isCall reports whether the kernel has made a call of a nop.
func (s *site) isCall(sv *survey) bool {
	const call, length = 0xe8, 5
	var now [length]byte
	if len(s.code) != length || !isPad(s.code) || sv.memory.at(now[:], s.addr) < length || now[0] != call {
		return false
	}
	m, ok := sv.maps.At(s.addr + length + uint64(int64(int32(binary.LittleEndian.Uint32(now[1:])))))
	return ok && m.Path == trampoline
}

// nopLength is the length of the nops that the kernel makes calls of.
const nopLength = 5

// spoils says why a uprobe at a site could spoil what its function keeps below the stack
// pointer; nil: it cannot. At the beginning of a function nothing is there. See
// uprobe.CheckNop.
func (sv *survey) spoils(s *site) error {
	if len(s.code) != nopLength || !isPad(s.code) || sv.nops == nil || sv.isFirst(s.asked) {
		return nil
	}
	if err := sv.nops(); err != nil {
		return &program.Refusal{Why: fmt.Sprintf("a uprobe on the nop at %#x, inside of a function, could change the function's results: %v", s.addr, err)}
	}
	return nil
}

// isFirst reports whether a function begins at an address for certain.
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

// moduleOf is what is known of the code of a mapped file.
func (sv *survey) moduleOf(m proc.Mapping, f *mapped) (_ *landing.Module, err error) {
	if f.module == nil {
		f.module, err = sv.codes.Of(sv.pid, m)
	}
	return f.module, err
}
