//go:build linux && amd64

package possible

import (
	"debug/elf"
	"errors"
	"os"

	"mirador/omis/code/x86/landing"
	"mirador/omis/linux/patch"
	"mirador/omis/linux/unwind"
)

// file is a program or library whose code is judged. Its addresses are those in the file.
type file struct {
	segments []segment
	bounds   func(addr uint64) (begin, end uint64)
}

// segment is a part of a file that is mapped as code.
type segment struct {
	base   uint64 // address of the first page
	module *landing.Module
}

const page = 0x1000

// open reads the code of a file.
func open(codes *landing.Catalog, f *os.File) (*file, error) {
	table, err := unwind.ReadTable(f)
	if err != nil {
		return nil, err
	}
	read := &file{bounds: table.Bounds}
	for _, p := range table.Code() {
		if p.Filesz == 0 {
			continue
		}
		s, err := segmentOf(codes, f, p)
		if err != nil {
			return nil, err
		}
		read.segments = append(read.segments, s)
	}
	return read, nil
}

// segmentOf reads a segment as the kernel maps it: whole pages, as far as the file has them.
func segmentOf(codes *landing.Catalog, f *os.File, p elf.ProgHeader) (segment, error) {
	before := p.Off % page
	length := (before + p.Filesz + page - 1) &^ (page - 1)
	module, err := codes.InFile(f, p.Off-before, length)
	return segment{base: p.Vaddr - before, module: module}, err
}

// code judges code of a file. It belongs to one goroutine.
type code struct{ surveyors []*patch.Surveyor }

var _ patch.Program = (*code)(nil)

func (f *file) code() *code {
	c := new(code)
	for _, s := range f.segments {
		c.surveyors = append(c.surveyors, &patch.Surveyor{Module: s.module, Base: s.base, Bounds: f.bounds})
	}
	return c
}

var errNoCode = errors.New("the file has no code there")

// Surveyor: see patch.Program.
func (c *code) Surveyor(addr uint64) (*patch.Surveyor, error) {
	for _, s := range c.surveyors {
		if addr-s.Base < s.Module.Size {
			return s, nil
		}
	}
	return nil, errNoCode
}

// Vacancies: see patch.Program. A file has no addresses for other code.
func (*code) Vacancies(uint64, uint64, []patch.Range) []uint64 { return nil }

// mostDecoded bounds the functions that a surveyor keeps: the code before and behind a function is judged with it.
const mostDecoded = 256

// tidy drops what is not likely to be needed again.
func (c *code) tidy() {
	for _, s := range c.surveyors {
		if s.Decoded() > mostDecoded {
			s.Forget()
		}
	}
}
