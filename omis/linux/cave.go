//go:build linux && amd64

package linux

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
)

const pageSize = 0x1000

// stub returns where a thread can make a system call for the monitor. Before there is a home
// that is a cave: the unused end of the last page of some module's code. cleanUp restores its
// bytes.
func (j *injector) stub() (addr uint64, cleanUp func(), err error) {
	if j.o.space.home != 0 {
		return j.o.space.home.Stub(), func() {}, nil
	}
	return caveStub(j.o.proc.PID, j.o.space.memory)
}

func caveStub(pid int, memory *os.File) (addr uint64, cleanUp func(), err error) {
	addr, err = findCave(pid, memory)
	if err != nil {
		return 0, nil, err
	}
	if holds(memory, addr, resident.StubCode) {
		// A monitor was killed at this point, and a thread may still be on its way back from
		// the call, so its code stays.
		return addr, func() {}, nil
	}
	if _, err := memory.WriteAt(resident.StubCode, int64(addr)); err != nil {
		return 0, nil, omis.Errorf(omis.OSError, "cannot write into process %d at %#x: %w", pid, addr, unwrapPath(err))
	}
	empty := make([]byte, len(resident.StubCode))
	return addr, func() { _, _ = memory.WriteAt(empty, int64(addr)) }, nil
}

// findCave looks for a module with a cave. The bytes there are no program text; they are
// mapped because mappings consist of pages.
func findCave(pid int, memory *os.File) (uint64, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return 0, err
	}
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	for _, m := range maps {
		if !m.Exec || !m.Private || m.Inode == 0 {
			continue
		}
		if addr := cave(pid, m, main, memory); addr != 0 {
			return addr, nil
		}
	}
	return 0, omis.Errorf(omis.NoMemory, "process %d has no room for a first system call in any of its modules", pid)
}

// cave returns the beginning of the cave in a code mapping, 0 if there is none.
func cave(pid int, m proc.Mapping, main string, memory *os.File) uint64 {
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return 0
	}
	defer f.Close()
	file, err := proc.ReadELF(f)
	if err != nil {
		return 0
	}
	for _, s := range file.Progs {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 || s.Off&^(pageSize-1) != m.Offset || s.Memsz > s.Filesz {
			continue
		}
		const aside = 16 // distance to the code
		addr := m.Start + s.Filesz + s.Off&(pageSize-1) + aside
		end := (addr + pageSize - 1) &^ (pageSize - 1)
		if end <= m.End && end-addr >= uint64(len(resident.StubCode)) && isVacant(memory, addr) {
			return addr
		}
	}
	return 0
}

// isVacant reports whether the bytes at an address are zero, or are the stub of a monitor that
// was killed.
func isVacant(memory *os.File, addr uint64) bool {
	return holds(memory, addr, make([]byte, len(resident.StubCode))) || holds(memory, addr, resident.StubCode)
}

func holds(memory *os.File, addr uint64, what []byte) bool {
	b := make([]byte, len(what))
	_, err := memory.ReadAt(b, int64(addr))
	return err == nil && bytes.Equal(b, what)
}
