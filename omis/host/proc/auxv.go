//go:build linux

package proc

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Entries of the auxiliary vector (getauxval(3)).
const (
	atBase   = 7  // where the dynamic linker is mapped
	atEntry  = 9  // the program's entry point
	atExecFn = 31 // the address of the executed path
)

// Interpreter returns where the dynamic linker of a process's program was mapped, 0 if the
// kernel started the program without one, and the entry point of the program.
func Interpreter(pid int) (base, entry uint64) {
	base, _ = auxiliary(pid, atBase)
	entry, _ = auxiliary(pid, atEntry)
	return base, entry
}

// auxiliary returns an entry of the auxiliary vector of a process.
func auxiliary(pid int, kind uint64) (value uint64, ok bool) {
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, false
	}
	const entry = 16
	for ; len(vector) >= entry; vector = vector[entry:] {
		if binary.LittleEndian.Uint64(vector) == kind {
			return binary.LittleEndian.Uint64(vector[8:]), true
		}
	}
	return 0, false
}
