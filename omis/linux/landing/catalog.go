//go:build linux && amd64

package landing

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/proc"
)

// Catalog keeps what is known of files that are mapped, each read once.
type Catalog struct {
	mu    sync.Mutex
	known map[identity]*Module
}

// identity is a mapped part of one version of a file.
type identity struct {
	dev, inode     uint64
	size, mtime    int64
	offset, length uint64
}

// NewCatalog makes an empty one.
func NewCatalog() *Catalog { return &Catalog{known: make(map[identity]*Module)} }

// Of knows the code of a process that is mapped at m.
func (c *Catalog) Of(pid int, m proc.Mapping) (*Module, error) {
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	f, err := proc.OpenImage(pid, m.Path, m.Path == main)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	id := identity{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), m.Offset, m.End - m.Start}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[id]; known != nil {
		return known, nil
	}
	module, err := Read(f, m.Offset, m.End-m.Start)
	if err == nil {
		c.known[id] = module
	}
	return module, err
}
