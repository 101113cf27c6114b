//go:build linux && amd64

package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"mirador/omis/host/proc"
)

// TestBiasOfSharedPage: lld lets segments share a page of the file, which is then mapped
// twice with different biases.
func TestBiasOfSharedPage(t *testing.T) {
	var file bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2,
	}
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: 0, Vaddr: 0, Filesz: 0x15480, Memsz: 0x15480, Align: 0x1000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x15480, Vaddr: 0x16480, Filesz: 0x2000, Memsz: 0x2000, Align: 0x1000},
	}
	for _, v := range []any{header, segments} {
		if err := binary.Write(&file, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	im, err := parse(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	code := proc.Mapping{Start: 0x7000_0001_6000, End: 0x7000_0001_9000, Exec: true, Offset: 0x15000}
	if bias, ok := im.bias(code); !ok || bias != 0x7000_0000_0000 {
		t.Errorf("%#x %v", bias, ok)
	}
}
