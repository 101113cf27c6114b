//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"math"
	"os"
)

// Unlimited is the result of AddressSpace if there is no limit.
const Unlimited = math.MaxUint64

// AddressSpace returns the number of bytes that a process may map (RLIMIT_AS).
func AddressSpace(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, err
	}
	return parseAddressSpace(b)
}

// parseAddressSpace returns the soft limit, which the kernel enforces.
func parseAddressSpace(text []byte) (uint64, error) {
	_, rest, ok := bytes.Cut(text, []byte("Max address space"))
	fields := bytes.Fields(rest)
	switch {
	case !ok || len(fields) == 0:
		return 0, fmt.Errorf("no limit of the address space in %q", text)
	case string(fields[0]) == "unlimited":
		return Unlimited, nil
	}
	var limit uint64
	_, err := fmt.Sscan(string(fields[0]), &limit)
	return limit, err
}
