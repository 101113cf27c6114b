//go:build linux && amd64

package linux

import (
	"bytes"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"

	"golang.org/x/arch/x86/x86asm"
)

// hasOther reports whether another tool has changed the code at an address: code has an int3
// there, or a call that the kernel (Linux 6.18 and later) makes of a five-byte nop for a
// uprobe. When the uprobe is removed, the kernel writes the nop over whatever is there.
func (s *space) hasOther(maps proc.Mappings, addr uint64, code []byte) bool {
	const call = 0xe8
	m, ok := maps.At(addr)
	if !ok || m.Inode == 0 || code[0] != int3 && code[0] != call {
		return false
	}
	f, err := proc.OpenImage(s.o.proc.PID, m)
	if err != nil {
		return false
	}
	defer f.Close()
	file := make([]byte, len(code))
	n, _ := f.ReadAt(file, int64(addr-m.Start+m.Offset)) // fewer bytes at the end of the file
	if file = file[:n]; n == 0 || bytes.Equal(file, code[:n]) {
		return false
	}
	if code[0] == int3 {
		return file[0] != int3
	}
	inst, err := relocate.Decode(file)
	return err == nil && inst.Op == x86asm.NOP && inst.Len == detour.JumpSize
}
