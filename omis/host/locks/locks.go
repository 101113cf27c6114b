//go:build linux

// Package locks finds the locks for which threads of a process wait, in /proc and in the memory of
// the process. cli imports it. It starts no goroutines.
package locks

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
)

// Lock is a lock for which threads of a process wait at present.
type Lock struct {
	Addr    uint64
	Holder  int   // the thread that holds it, 0 if unknown
	Waiting []int // threads
}

// Of returns the locks for which threads of a process wait in the kernel, those with the most
// waiting threads first. It stops no thread: each thread is seen at another instant.
func Of(pid int) ([]Lock, error) {
	tids, err := proc.Threads(pid)
	if err != nil {
		return nil, err
	}
	byAddr := make(map[uint64]*Lock)
	for _, tid := range tids {
		addr, inherits, waits := waitsFor(pid, tid)
		if !waits {
			continue
		}
		l := byAddr[addr]
		if l == nil {
			l = &Lock{Addr: addr, Holder: holder(pid, addr, inherits, tids)}
			byAddr[addr] = l
		}
		l.Waiting = append(l.Waiting, tid)
	}
	list := make([]Lock, 0, len(byAddr))
	for _, l := range byAddr {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b Lock) int {
		if len(a.Waiting) != len(b.Waiting) {
			return len(b.Waiting) - len(a.Waiting)
		}
		return int(min(max(int64(a.Addr-b.Addr), -1), 1))
	})
	return list, nil
}

// waitsFor returns the lock for which a thread waits, and whether the lock inherits priorities.
func waitsFor(pid, tid int) (addr uint64, inherits, waits bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return 0, false, false // it has ended
	}
	var number int
	var op, word uint64
	if _, err := fmt.Sscanf(string(text), "%d 0x%x 0x%x 0x%x", &number, &addr, &op, &word); err != nil {
		return 0, false, false // it runs
	}
	switch op & calls.CommandOfFutex {
	case calls.FutexLockPI, calls.FutexLockPI2:
		inherits = true
	}
	return addr, inherits, number == unix.SYS_FUTEX && calls.WaitsForLock(op, word)
}

// holder returns the thread that holds a lock: the kernel requires that the word of a lock with
// inheritance of priorities names it, and a mutex of glibc has it two words later. The
// program may have written anything there, so only the number of one of its threads is accepted.
func holder(pid int, addr uint64, inherits bool, tids []int) int {
	const threadNumber = 1<<30 - 1 // FUTEX_TID_MASK
	var words [12]byte
	if _, err := proc.ReadMemory(pid, addr, words[:]); err != nil {
		return 0
	}
	tid := int(binary.LittleEndian.Uint32(words[8:]))
	if inherits {
		tid = int(binary.LittleEndian.Uint32(words[:]) & threadNumber)
	}
	if !slices.Contains(tids, tid) {
		return 0
	}
	return tid
}
