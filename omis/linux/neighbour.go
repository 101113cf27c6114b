//go:build linux && amd64

package linux

import (
	"bytes"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"

	"golang.org/x/arch/x86/x86asm"
)

// hasOther reports whether another tool has put something at an address whose memory has some
// code: an int3, or a call that the kernel (Linux 6.18 and later) makes of a nop of five bytes
// for a uprobe. The kernel puts the nop back over whatever stands there by then.
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
	n, _ := f.ReadAt(file, int64(addr-m.Start+m.Offset)) // less at the end of the file
	if file = file[:n]; n == 0 || bytes.Equal(file, code[:n]) {
		return false
	}
	if code[0] == int3 {
		return file[0] != int3
	}
	inst, err := relocate.Decode(file)
	return err == nil && inst.Op == x86asm.NOP && inst.Len == detour.JumpSize
}
