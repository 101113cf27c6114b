//go:build linux

package proc

import (
	"fmt"
	"os"
	"slices"
)

// Forked lists the descendants of a process that were forked without executing another
// program file, such as the workers of a forking server, but not the commands of a shell.
func Forked(pid int) []int {
	program, err := os.Stat(exe(pid))
	if err != nil {
		return nil // the process has ended, or belongs to another user
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range childrenOf(queue[0]) {
			other, err := os.Stat(exe(child))
			if err == nil && os.SameFile(program, other) && !slices.Contains(all, child) {
				all = append(all, child)
				queue = append(queue, child)
			}
		}
	}
	return all
}

// childrenOf lists the children of all threads of a process.
func childrenOf(pid int) (all []int) {
	tids, err := Threads(pid)
	if err != nil {
		return nil // the process has ended
	}
	for _, tid := range tids {
		all = append(all, Children(pid, tid)...)
	}
	return all
}

func exe(pid int) string { return fmt.Sprintf("/proc/%d/exe", pid) }
