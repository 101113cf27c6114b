//go:build linux

package proc

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Bits of an entry of /proc/PID/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61 // or of memory that processes share
)

// IsOfFile reports whether the memory of a process at an address is still the content of a file: a write would have
// given the process a copy of the page. It returns false if the kernel does not say.
func IsOfFile(pid int, addr uint64) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	const entry = 8
	var b [entry]byte
	if _, err := f.ReadAt(b[:], int64(addr/uint64(os.Getpagesize())*entry)); err != nil {
		return false
	}
	page := binary.NativeEndian.Uint64(b[:])
	return page&pageOfFile != 0 || page&(pagePresent|pageSwapped) == 0
}
