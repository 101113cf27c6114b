//go:build linux && amd64

package library

import (
	"encoding/binary"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/host/proc"
)

// starts returns the addresses in a process at which calls to a function begin. There are
// several if it is not known yet which implementation the dynamic linker will choose.
// Some implementations serve several functions (memcpy, memmove).
func (m module) starts(pid int, name string, s symbol, modules []module) []uint64 {
	if !s.chooses {
		return []uint64{s.value + m.Bias}
	}
	if found := m.linked(pid, name, s, modules); len(found) > 0 {
		return found
	}
	return m.offered(pid, s)
}

// linked reads the dynamic linker's choice from where the linker wrote it: the slots of
// this module, and those of modules that call the function.
func (m module) linked(pid int, name string, s symbol, modules []module) (found []uint64) {
	look := func(slot uint64) {
		var b [8]byte
		if _, err := proc.ReadMemory(pid, slot, b[:]); err == nil {
			found = m.add(found, binary.LittleEndian.Uint64(b[:]), s)
		}
	}
	for _, offset := range m.chosen[s.value] {
		look(offset + m.Bias)
	}
	for _, other := range modules {
		// A module's own slot that is not bound yet points to its own linkage table,
		// which would look like a choice.
		if other.image == m.image {
			continue
		}
		for _, offset := range other.slots[name] {
			look(offset + other.Bias)
		}
	}
	return found
}

// add appends an address in the module's code, other than that of the choosing function.
func (m module) add(found []uint64, addr uint64, s symbol) []uint64 {
	code := Range{m.CodeStart, m.CodeStart + m.CodeLen}
	if !code.has(addr) || addr == s.value+m.Bias || slices.Contains(found, addr) {
		return found
	}
	return append(found, addr)
}

// offered reads the possible choices: the choosing function takes the address of each
// implementation.
func (m module) offered(pid int, s symbol) (found []uint64) {
	const longest = 4096
	code := make([]byte, min(s.size, longest))
	n, _ := proc.ReadMemory(pid, s.value+m.Bias, code)
	for at := 0; at < n; {
		const endbr64 = 4 // the decoder does not know this instruction
		in, err := x86asm.Decode(code[at:n], 64)
		if err != nil {
			return found
		}
		if in.Op == 0 {
			at += endbr64
			continue
		}
		at += in.Len
		if mem, ok := in.Args[1].(x86asm.Mem); ok && in.Op == x86asm.LEA && mem.Base == x86asm.RIP {
			// The decoder does not extend the sign.
			found = m.add(found, s.value+m.Bias+uint64(at)+uint64(int32(mem.Disp)), s)
		}
	}
	return found
}
