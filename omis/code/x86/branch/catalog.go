//go:build linux && amd64

package branch

import (
	"os"

	"mirador/omis/host/proc"
)

// Catalog keeps what is known of files that are mapped, each read once.
type Catalog struct{ known proc.Images[*Text] }

// Text is what is known of code.
type Text struct {
	Branches Targets // by their distance from the start of the mapping

	// Go tells that it is of a program in Go. Its functions run on stacks with
	// little room, and it keeps the addresses where it interrupted them.
	Go bool
}

// NewCatalog makes an empty one.
func NewCatalog() *Catalog { return new(Catalog) }

// Of reads the code of a process that is mapped at m, in its file: what stands in
// memory has been patched, maybe. It reads some of it into code, too, which begins
// at an address.
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
