package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// left says which process a program that has ended has left behind, "" if none: a program that moves
// into the background cannot be measured to its end.
func (t *subject) left() string {
	for _, pid := range marked(t.keeper.mark) {
		group, err := unix.Getpgid(pid)
		if err != nil || pid == t.pid || group != t.pid && (t.keeper.knows(pid) || t.keeper.knows(group)) {
			continue
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may end now
		return fmt.Sprintf("; process %d (%s), which it has started, goes on: let the program stay in the foreground until its work is done", pid, strings.TrimSpace(string(name)))
	}
	return ""
}

// marked returns the processes that have a gate's mark in their environment.
func marked(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, file := range files {
		env, _ := os.ReadFile(file) // it may have ended
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && slices.Contains(strings.Split(string(env), "\x00"), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}
