//go:build linux && amd64

package landing

import (
	"debug/elf"
	"os"

	"mirador/omis/host/proc"
)

// Catalog caches what it finds out about mapped files, so that it reads each file once.
type Catalog struct {
	known    proc.Images[*Module]
	runtimes proc.Images[mappedRuntime]

	schedulers proc.Images[mappedScheduler]
}

// mappedRuntime is a Runtime with the difference between addresses of the file and
// offsets in it, in the mapped part.
type mappedRuntime struct {
	*Runtime
	shift uint64
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog { return new(Catalog) }

// Of returns the Module of the code of a process that is mapped at m.
func (c *Catalog) Of(pid int, m proc.Mapping) (*Module, error) {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return c.known.Of(f, m, func() (*Module, error) { return Read(f, m.Offset, m.End-m.Start) })
}

// InFile returns the Module of a part of a file, which a process maps in whole pages.
func (c *Catalog) InFile(f *os.File, offset, length uint64) (*Module, error) {
	m := proc.Mapping{Offset: offset, End: length, Path: f.Name()}
	return c.known.Of(f, m, func() (*Module, error) { return Read(f, offset, length) })
}

// Runtime returns the Go runtime's data of the file mapped at m, if the code at addr is
// Go, else nil. It reads less than Of.
func (c *Catalog) Runtime(pid int, m proc.Mapping, addr uint64) (*Runtime, error) {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := c.runtimes.Of(f, m, func() (mappedRuntime, error) {
		file, err := proc.ReadELF(f)
		if err != nil {
			return mappedRuntime{}, err
		}
		return mappedAt(file, m)
	})
	if err != nil {
		return nil, err
	}
	return r.at(addr - m.Start + m.Offset + r.shift), nil
}

// mappedAt reads the runtime's data of a file whose code is mapped at m.
func mappedAt(file *elf.File, m proc.Mapping) (mappedRuntime, error) {
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off&^(page-1) <= m.Offset && m.Offset < p.Off+p.Filesz {
			return mappedRuntime{ReadRuntime(file), p.Vaddr - p.Off}, nil
		}
	}
	return mappedRuntime{}, errNoCode
}
