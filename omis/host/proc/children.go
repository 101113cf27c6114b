//go:build linux

package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children returns the child processes of a thread, including those that it adopted.
func Children(pid, tid int) []int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
	if err != nil {
		return nil // the thread has ended, or the kernel keeps no such list
	}
	var list []int
	for _, f := range strings.Fields(string(b)) {
		if child, err := strconv.Atoi(f); err == nil {
			list = append(list, child)
		}
	}
	return list
}
