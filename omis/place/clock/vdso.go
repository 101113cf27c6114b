//go:build linux

package clock

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"mirador/omis/host/proc"
)

const vdsoName = "[vdso]"

// gettime returns the offset of the function __vdso_clock_gettime in the vDSO, which is
// the same in all 64-bit processes.
var gettime = sync.OnceValues(func() (uint64, error) {
	at, err := locate(os.Getpid(), vdsoName)
	if err != nil {
		return 0, err
	}
	maps, err := proc.Maps(os.Getpid())
	if err != nil {
		return 0, err
	}
	m, _ := maps.At(at)
	image := unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), m.End-m.Start) // memory of the kernel
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("the vDSO has no function __vdso_clock_gettime")
})

// locateFunction returns the address of __vdso_clock_gettime in a process.
func locateFunction(pid int) (uint64, error) {
	offset, err := gettime()
	if err != nil {
		return 0, err
	}
	own, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, os.ErrNotExist) {
		own = "" // a kernel without time namespaces
	} else if err != nil {
		return 0, err
	}
	if its, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/time", pid)); its != own {
		return 0, fmt.Errorf("the process is in another time namespace, in which the clock has another origin")
	}
	at, err := locate(pid, vdsoName)
	return at + offset, err
}
