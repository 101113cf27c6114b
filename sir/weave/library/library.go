// Package library writes shared libraries for languages whose programs load libraries and have no assembler.
package library

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
)

// Library is a shared library in ELF with procedures that do nothing and have a marker.
type Library struct {
	Names   []string // of procedures
	Markers []string // of each
	Weaving string
}

// page is the alignment of what is mapped.
const page = 4096

// Sections of the library, by number.
const (
	_ = iota
	secSymbols
	secStrings
	secHash
	secText
	secDynamic
	secNotes
	secNames
)

// stub is the code of a procedure: a marker with room for a jump in place of it, and ret.
var stub = append(bytes.Repeat([]byte{0x90}, 5), 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc)

// section is a part of the file.
type section struct {
	name string
	elf.Section64
	body []byte
}

// Bytes returns the file.
func (l *Library) Bytes() []byte {
	stringTable, offsets := table(l.Names)
	sections := []section{secSymbols: {name: ".dynsym", Section64: elf.Section64{Type: uint32(elf.SHT_DYNSYM), Flags: uint64(elf.SHF_ALLOC), Link: secStrings, Info: 1, Entsize: elf.Sym64Size}},
		secStrings: {name: ".dynstr", body: stringTable, Section64: elf.Section64{Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_ALLOC)}},
		secHash:    {name: ".hash", body: l.hash(), Section64: elf.Section64{Type: uint32(elf.SHT_HASH), Flags: uint64(elf.SHF_ALLOC), Link: secSymbols, Entsize: 4}},
		secText:    {name: ".text", body: bytes.Repeat(stub, len(l.Names)), Section64: elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)}},
		secDynamic: {name: ".dynamic", Section64: elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Flags: uint64(elf.SHF_ALLOC | elf.SHF_WRITE), Link: secStrings, Entsize: 16}},
		secNotes:   {name: ".note.stapsdt", Section64: elf.Section64{Type: uint32(elf.SHT_NOTE)}},
		secNames:   {name: ".shstrtab", Section64: elf.Section64{Type: uint32(elf.SHT_STRTAB)}},
	}
	sections[secSymbols].body = make([]byte, elf.Sym64Size*(len(l.Names)+1))
	sections[secDynamic].body = make([]byte, 16*6)
	lay(sections)
	l.symbols(sections, offsets)
	l.dynamic(sections)
	sections[secNotes].body = l.notes(sections[secText].Addr)
	return assembled(sections)
}

// table returns a table of strings, and where each of them is.
func table(names []string) (text []byte, offsets []uint32) {
	text = []byte{0}
	for _, n := range names {
		offsets = append(offsets, uint32(len(text)))
		text = append(append(text, n...), 0)
	}
	return text, offsets
}

// lay gives the sections that are mapped their addresses, which are also their places in the file.
func lay(sections []section) {
	at := uint64(elf.Sym64Size) * 20 // behind the headers
	for i := secSymbols; i <= secDynamic; i++ {
		s := &sections[i]
		s.Addralign = 16
		if i == secText || i == secDynamic {
			s.Addralign = page
		}
		at = (at + s.Addralign - 1) &^ (s.Addralign - 1)
		s.Addr, s.Off, s.Size = at, at, uint64(len(s.body))
		at += s.Size
	}
}

// hash returns a hash table of one chain for each of its buckets.
func (l *Library) hash() []byte {
	buckets := uint32(len(l.Names)/2 + 1)
	words := make([]uint32, 2+int(buckets)+len(l.Names)+1)
	words[0], words[1] = buckets, uint32(len(l.Names)+1)
	for i, n := range l.Names {
		var h uint32
		for _, c := range []byte(n) {
			h = h<<4 + uint32(c)
			if g := h & 0xf0000000; g != 0 {
				h = h ^ g>>24 ^ g
			}
		}
		b := 2 + h%buckets
		words[2+int(buckets)+i+1], words[b] = words[b], uint32(i+1)
	}
	return little(words)
}

func (l *Library) symbols(sections []section, names []uint32) {
	var list []elf.Sym64
	for i, n := range names {
		list = append(list, elf.Sym64{Name: n, Info: uint8(elf.STB_GLOBAL)<<4 | uint8(elf.STT_FUNC), Shndx: secText, Value: sections[secText].Addr + uint64(i*len(stub)), Size: 6})
	}
	copy(sections[secSymbols].body[elf.Sym64Size:], little(list))
}

func (l *Library) dynamic(sections []section) {
	copy(sections[secDynamic].body, little([]elf.Dyn64{
		{Tag: int64(elf.DT_HASH), Val: sections[secHash].Addr}, {Tag: int64(elf.DT_SYMTAB), Val: sections[secSymbols].Addr}, {Tag: int64(elf.DT_STRTAB), Val: sections[secStrings].Addr},
		{Tag: int64(elf.DT_STRSZ), Val: sections[secStrings].Size}, {Tag: int64(elf.DT_SYMENT), Val: elf.Sym64Size},
	}))
}

// notes returns notes of SystemTap's form.
func (l *Library) notes(code uint64) (all []byte) {
	add := func(address uint64, marker string) {
		body := little([]uint64{address, 0, 0})
		body = append(body, "mirador\x00"+marker+"\x00\x00"...)
		all = append(all, little([]uint32{8, uint32(len(body)), 3})...)
		all = append(append(all, "stapsdt\x00"...), body...)
		all = append(all, make([]byte, -len(all)&3)...)
	}
	add(0, "weaving:"+l.Weaving)
	for i, m := range l.Markers {
		add(code+uint64(i*len(stub)), m)
	}
	return all
}

// assembled returns the file with its headers.
func assembled(sections []section) []byte {
	var names []string
	for i := range sections {
		names = append(names, sections[i].name)
	}
	text, offsets := table(names)
	sections[secNames].body = text
	last := &sections[secDynamic]
	at := last.Off + last.Size
	for i := secNotes; i <= secNames; i++ {
		s := &sections[i]
		s.Off, s.Size, s.Addralign = at, uint64(len(s.body)), 4
		at = (at + s.Size + 7) &^ 7
	}
	file := make([]byte, at)
	var headers []elf.Section64
	for i := range sections {
		sections[i].Name = offsets[i]
		headers = append(headers, sections[i].Section64)
		copy(file[sections[i].Off:], sections[i].body)
	}
	copy(file, little(elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Phoff: 64, Shoff: at, Ehsize: 64, Phentsize: 56, Phnum: 5, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: secNames}))
	code := &sections[secText]
	copy(file[64:], little([]elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Filesz: code.Off, Memsz: code.Off, Align: page},
		mapped(elf.PT_LOAD, elf.PF_R|elf.PF_X, code, page),
		mapped(elf.PT_LOAD, elf.PF_R|elf.PF_W, last, page),
		mapped(elf.PT_DYNAMIC, elf.PF_R|elf.PF_W, last, 8),
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	}))
	return slices.Concat(file, little(headers))
}

func mapped(kind elf.ProgType, flags elf.ProgFlag, s *section, align uint64) elf.Prog64 {
	return elf.Prog64{Type: uint32(kind), Flags: uint32(flags), Off: s.Off, Vaddr: s.Addr, Paddr: s.Addr, Filesz: s.Size, Memsz: s.Size, Align: align}
}

// little returns a value in the byte order of the machine.
func little(value any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, value)
	if err != nil {
		panic(err) // a value of another size
	}
	return b
}
