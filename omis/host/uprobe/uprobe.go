//go:build linux

// Package uprobe sets a uprobe by a perf event and counts its hits, without an eBPF
// program. Tools beside the monitor do this, and the monitor does it to test the kernel.
//
// Only omis/host, omis/linux, omis/place and torture may import it. A Uprobe may be used
// from any goroutine.
package uprobe

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Uprobe is a uprobe in one process.
type Uprobe struct{ file *os.File }

// Kinds of uprobes: at an instruction, or at the return of the function that begins
// there.
const (
	AtEntry = 0
	AtExit  = 1
)

// Set sets a uprobe in a process, at an offset of a file that the process maps as code.
func Set(pid int, path string, offset uint64, kind uint64) (*Uprobe, error) {
	source, err := source()
	if err != nil {
		return nil, err
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{Type: source, Config: kind, Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot set a uprobe at %s+%#x: %w", path, offset, err)
	}
	return &Uprobe{os.NewFile(uintptr(fd), "uprobe")}, nil
}

// source returns the kernel's type number of uprobe events.
func source() (uint32, error) {
	text, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return 0, fmt.Errorf("this kernel does not support uprobes as perf events: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uint32(n), err
}

// Count returns the number of hits in the process.
func (u *Uprobe) Count() (uint64, error) {
	var b [8]byte
	if _, err := u.file.Read(b[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// Close removes the uprobe. The kernel waits for all processors, up to a quarter of a
// second.
func (u *Uprobe) Close() error { return u.file.Close() }
