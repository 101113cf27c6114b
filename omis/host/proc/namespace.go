//go:build linux

package proc

import (
	"fmt"
	"os"
)

// SameNumbers tells whether a process knows itself and its threads by the numbers that we
// know them by: whether it lives in our own pid namespace.
func SameNumbers(pid int) (bool, error) {
	ours, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false, err
	}
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return its == ours, err
}
