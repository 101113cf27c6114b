//go:build linux && amd64

package landing

import (
	"debug/elf"

	"mirador/omis/host/proc"
)

// Catalog keeps what is known of files that are mapped, each read once.
type Catalog struct {
	known    proc.Images[*Module]
	runtimes proc.Images[mappedRuntime]
}

// mappedRuntime is a runtime with how far addresses of the file are from offsets in it,
// in the part that is mapped.
type mappedRuntime struct {
	*Runtime
	shift uint64
}

// NewCatalog makes an empty one.
func NewCatalog() *Catalog { return new(Catalog) }

// Of knows the code of a process that is mapped at m.
func (c *Catalog) Of(pid int, m proc.Mapping) (*Module, error) {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return c.known.Of(f, m, func() (*Module, error) { return Read(f, m.Offset, m.End-m.Start) })
}

// Runtime returns what a file that is mapped at m tells of Go's runtime, where the code at
// an address is of Go; else nil. It reads less than Of.
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
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off&^(page-1) <= m.Offset && m.Offset < p.Off+p.Filesz {
				return mappedRuntime{ReadRuntime(file), p.Vaddr - p.Off}, nil
			}
		}
		return mappedRuntime{}, errNoCode
	})
	if err != nil || !r.Has(addr-m.Start+m.Offset+r.shift) {
		return nil, err
	}
	return r.Runtime, nil
}
