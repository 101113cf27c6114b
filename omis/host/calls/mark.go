package calls

import "fmt"

// A thread that makes a system call for the monitor carries a mark in the upper half of
// the register with the call's number: the kernel uses only the lower half, but preserves
// both. So eBPF programs can distinguish such calls from the target's own.

// Mark is the value of the upper half.
const Mark = 0x4d495241

// Marked returns the number of a call with the mark.
func Marked(number uint64) uint64 { return Mark<<32 | number }

// Marks reports whether a kernel of this release accepts marked numbers: since Linux 5.14
// the number of a call is an int.
func Marks(release string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}
