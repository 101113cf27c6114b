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
	program, err := programOf(pid)
	if err != nil {
		return nil // the process has ended, or belongs to another user
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range childrenOf(queue[0]) {
			other, err := programOf(child)
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

// programOf identifies the program that a process executes.
func programOf(pid int) (os.FileInfo, error) {
	path := fmt.Sprintf("/proc/%d/exe", pid)
	return InTime(pid, path, func() (os.FileInfo, error) { return os.Stat(path) })
}
