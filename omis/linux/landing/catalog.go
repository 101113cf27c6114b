//go:build linux && amd64

package landing

import (
	"fmt"
	"os"

	"mirador/omis/linux/proc"
)

// Catalog keeps what is known of files that are mapped, each read once.
type Catalog struct{ known proc.Images[*Module] }

// NewCatalog makes an empty one.
func NewCatalog() *Catalog { return new(Catalog) }

// Of knows the code of a process that is mapped at m.
func (c *Catalog) Of(pid int, m proc.Mapping) (*Module, error) {
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	f, err := proc.OpenImage(pid, m.Path, m.Path == main)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return c.known.Of(f, m, func() (*Module, error) { return Read(f, m.Offset, m.End-m.Start) })
}
