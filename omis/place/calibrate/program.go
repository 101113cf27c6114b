//go:build linux

package calibrate

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// The dummy is an executable with a C library and unwind tables, like most programs.
// Placements avoid Go programs, whose stacks are small, so the dummy is no Go program.

// Addresses in the dummy's file, which are also offsets: of the code, and of what the
// loader writes to. The first page is only read.
const (
	page      = 0x1000
	codeAt    = page
	dynamicAt = 2 * page
	fileSize  = 3 * page
)

// loader is the dynamic loader, unless this program names another one.
const loader = "/lib64/ld-linux-x86-64.so.2"

// interpreter returns the dynamic loader of this program.
func interpreter() string {
	self, err := elf.Open("/proc/self/exe")
	if err != nil {
		return loader
	}
	defer self.Close()
	for _, p := range self.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err == nil {
				return string(bytes.TrimRight(name, "\x00"))
			}
		}
	}
	return loader
}

// layout collects the bytes of the first page.
type layout struct{ bytes.Buffer }

// put appends a value, aligned, and returns its address.
func (l *layout) put(v any) uint64 {
	for l.Len()%8 != 0 {
		l.WriteByte(0)
	}
	at := uint64(l.Len())
	_ = binary.Write(l, binary.LittleEndian, v) // a write to memory does not fail
	return at
}

// Strings of the tables, each with its offset.
const (
	libraryName  = 1 // in dynamicNames
	dynamicNames = "\x00libc.so.6\x00"
	sectionNames = "\x00.text\x00.eh_frame\x00.symtab\x00.strtab\x00function\x00"
	textName     = 1
	framesName   = 7
	symbolsName  = 17
	stringsName  = 25
	functionName = 33
)

// Sections, numbered as they refer to each other.
const (
	textSection = 1 + iota
	_
	_
	stringsSection
	sections
)

// program returns the file, and the offset of its functions.
func programFile() (file []byte, first uint64) {
	code, offset := code()
	pad := (stride - offset%stride) % stride
	entry := uint64(codeAt + pad)
	first = entry + uint64(offset)

	var l layout
	const segments = 6
	l.Write(make([]byte, 64+56*segments)) // space for the headers, which are written last
	interp := l.put([]byte(interpreter() + "\x00"))
	interpSize := uint64(l.Len()) - interp
	names := l.put([]byte(dynamicNames))
	symbols := l.put(elf.Sym64{})
	hash := l.put([]uint32{1, 1, 0, 0})
	table := frames(l.align(), entry, first)
	framesAt := l.put(table)
	strings := l.put([]byte(sectionNames))
	list := symbolTable(first)
	symbolsAt := l.put(list)
	sectionsAt := l.put([]elf.Section64{
		{},
		{Name: textName, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: codeAt, Off: codeAt, Size: page, Addralign: stride},
		{Name: framesName, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: framesAt, Off: framesAt, Size: uint64(len(table)), Addralign: 8},
		{Name: symbolsName, Type: uint32(elf.SHT_SYMTAB), Off: symbolsAt, Size: uint64(elf.Sym64Size * len(list)), Link: stringsSection, Info: 1, Addralign: 8, Entsize: elf.Sym64Size},
		{Name: stringsName, Type: uint32(elf.SHT_STRTAB), Off: strings, Size: uint64(len(sectionNames)), Addralign: 1},
	})
	dynamic := []elf.Dyn64{
		{Tag: int64(elf.DT_NEEDED), Val: libraryName}, {Tag: int64(elf.DT_STRTAB), Val: names}, {Tag: int64(elf.DT_STRSZ), Val: uint64(len(dynamicNames))},
		{Tag: int64(elf.DT_SYMTAB), Val: symbols}, {Tag: int64(elf.DT_SYMENT), Val: elf.Sym64Size}, {Tag: int64(elf.DT_HASH), Val: hash}, {},
	}
	var head layout
	head.put(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Entry: entry,
		Phoff: 64, Shoff: sectionsAt, Ehsize: 64, Phentsize: 56, Phnum: segments, Shentsize: 64, Shnum: sections, Shstrndx: stringsSection,
	})
	head.put([segments]elf.Prog64{
		segment(elf.PT_PHDR, elf.PF_R, 64, 56*segments, 8),
		segment(elf.PT_INTERP, elf.PF_R, interp, interpSize, 1),
		segment(elf.PT_LOAD, elf.PF_R, 0, page, page),
		segment(elf.PT_LOAD, elf.PF_R|elf.PF_X, codeAt, page, page),
		segment(elf.PT_LOAD, elf.PF_R|elf.PF_W, dynamicAt, page, page),
		segment(elf.PT_DYNAMIC, elf.PF_R|elf.PF_W, dynamicAt, uint64(16*len(dynamic)), 8),
	})
	var end layout
	end.put(dynamic)
	file = make([]byte, fileSize)
	copy(file, l.Bytes())
	copy(file, head.Bytes())
	copy(file[entry:], code)
	copy(file[dynamicAt:], end.Bytes())
	return file, first
}

// align returns the address of the next value.
func (l *layout) align() uint64 { return uint64(l.Len()+7) &^ 7 }

func segment(t elf.ProgType, f elf.ProgFlag, at, size, align uint64) elf.Prog64 {
	return elf.Prog64{Type: uint32(t), Flags: uint32(f), Off: at, Vaddr: at, Paddr: at, Filesz: size, Memsz: size, Align: align}
}

// symbolTable returns the symbols of the functions.
func symbolTable(first uint64) []elf.Sym64 {
	list := make([]elf.Sym64, 1+functions)
	for i := range uint64(functions) {
		list[1+i] = elf.Sym64{Name: functionName, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: textSection, Value: first + i*stride, Size: stride}
	}
	return list
}

// frames returns the unwind tables of the functions, for an address: at each instruction,
// only the return address is on the stack.
func frames(at, entry, first uint64) []byte {
	var l layout
	// Length, id, version, "zR", factors of code and data, register of the return
	// address, encoding of addresses (relative, 4 bytes); the caller's stack pointer is
	// rsp+8, and the return address is 8 below that.
	l.Write([]byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0})
	add := func(begin, size uint64) {
		here := uint64(l.Len())
		relative := int32(int64(begin) - int64(at+here+8))
		_ = binary.Write(&l, binary.LittleEndian, []int32{16, int32(here + 4), relative, int32(size), 0}) // a write to memory does not fail
	}
	add(entry, first-entry)
	for i := range uint64(functions) {
		add(first+i*stride, stride)
	}
	l.Write([]byte{0, 0, 0, 0})
	return l.Bytes()
}
