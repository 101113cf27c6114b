//go:build linux

package proc

import (
	"fmt"
	"os"
)

// SameNumbers reports whether a process is in the monitor's pid namespace, so that both
// use the same numbers for it and its threads.
func SameNumbers(pid int) (bool, error) {
	ours, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false, err
	}
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return its == ours, err
}
