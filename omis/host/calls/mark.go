package calls

import "fmt"

// A thread that makes a system call for the monitor has a mark in the upper half of the
// register with the call's number: the kernel looks at the lower half alone, but keeps
// the whole. So programs in the kernel tell such calls from the program's own.

// Mark is what stands in the upper half.
const Mark = 0x4d495241

// Marked is the number of a call with the mark.
func Marked(number uint64) uint64 { return Mark<<32 | number }

// Marks tells whether a kernel takes marked numbers, by its release: since Linux 5.14 the
// number of a call is an int.
func Marks(release string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}
