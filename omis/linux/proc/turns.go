//go:build linux && amd64

package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Turns is how often a thread was given a processor.
func Turns(pid, tid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 3 {
		return 0, fmt.Errorf("the kernel does not say how often thread %d ran", tid)
	}
	return strconv.ParseUint(string(fields[2]), 10, 64)
}
