//go:build linux && amd64

package branch

import (
	"os"

	"mirador/omis/host/proc"
)

// Catalog caches the Text of mapped files, so that it reads each file once.
type Catalog struct{ known proc.Images[*Text] }

// Text describes the code of a mapping.
type Text struct {
	Branches Targets // by their distance from the start of the mapping

	// Go reports that the code belongs to a Go program. Its functions run on small
	// stacks, and its runtime stores addresses at which it interrupted them.
	Go bool
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog { return new(Catalog) }

// Of returns the Text of the code of a process that is mapped at m. It reads the file,
// because the code in memory may be patched. It also fills code with the file's bytes for
// the address addr.
func (c *Catalog) Of(pid int, m proc.Mapping, addr uint64, code []byte) (*Text, error) {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.ReadAt(code, int64(addr-m.Start+m.Offset)); err != nil {
		return nil, err
	}
	return c.known.Of(f, m, func() (*Text, error) { return read(f, m) })
}

func read(f *os.File, m proc.Mapping) (*Text, error) {
	file, err := proc.ReadELF(f)
	if err != nil {
		return nil, err
	}
	code, err := proc.ReadMapped(f, m)
	if err != nil {
		return nil, err
	}
	return &Text{Find(code, 0), file.Section(".gopclntab") != nil}, nil
}
