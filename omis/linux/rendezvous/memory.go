//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis/host/sealed"
)

// memory is the monitor's mapping of a board.
type memory struct {
	bytes []byte
	board *board
}

// openMemory maps a file that a target has open, and seals it, so that the target cannot
// truncate it.
func openMemory(pid, fd int) (*memory, error) {
	f, err := sealed.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := sealed.Fresh(f); err != nil {
		return nil, err
	}
	if err := f.Truncate(boardSize); err != nil {
		return nil, err
	}
	if err := sealed.Seal(f, boardSize); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map the shared memory: %w", err)
	}
	return &memory{b, (*board)(unsafe.Pointer(&b[0]))}, nil
}

// close unmaps the board.
func (m *memory) close() { _ = unix.Munmap(m.bytes) }
