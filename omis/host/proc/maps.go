//go:build linux

package proc

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End                 uint64
	Read, Write, Exec, Private bool
	Offset                     uint64
	Dev, Inode                 uint64
	Path                       string
}

// Mappings lists mappings in ascending order without overlaps.
type Mappings []Mapping

// Maps reads the mappings of a process.
func Maps(pid int) (Mappings, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil, ended(pid)
	}
	lines, err := p.ProcMaps()
	if err != nil {
		return nil, readError(pid, err)
	}
	ms := make(Mappings, len(lines))
	for i, l := range lines {
		ms[i] = Mapping{
			Start: uint64(l.StartAddr), End: uint64(l.EndAddr),
			Read: l.Perms.Read, Write: l.Perms.Write, Exec: l.Perms.Execute, Private: l.Perms.Private,
			Offset: uint64(l.Offset), Dev: l.Dev, Inode: l.Inode, Path: l.Pathname,
		}
	}
	return ms, nil
}

// At finds the mapping that contains addr.
func (ms Mappings) At(addr uint64) (Mapping, bool) {
	i, found := slices.BinarySearchFunc(ms, addr, func(m Mapping, a uint64) int {
		switch {
		case m.End <= a:
			return -1
		case m.Start > a:
			return 1
		}
		return 0
	})
	if !found {
		return Mapping{}, false
	}
	return ms[i], true
}

// stackPointer parses the last number but one of /proc/PID/task/TID/syscall.
func stackPointer(line string) (uint64, bool) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, false
	}
	sp, err := strconv.ParseUint(f[len(f)-2], 0, 64)
	return sp, err == nil && sp != 0
}
