package targets

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const markName = "MIRADOR_TEST_TARGET="

// NoneLeft returns an environment entry to start processes with. At the end of
// the test every process that inherited it, children in sessions of their own
// included, must have ended; what is left fails the test and is killed.
//
// Start uses it for its target. A test that has a gateway start targets gives it
// to the gateway; cleanups run last first, so it must be asked for before the
// cleanup that ends the gateway is set.
func NoneLeft(t testing.TB) string {
	t.Helper()
	mark := fmt.Sprintf("%s%d.%d", markName, os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		left := marked(mark)
		for end := time.Now().Add(patience / 10); len(left) > 0 && time.Now().Before(end); left = marked(mark) {
			time.Sleep(5 * time.Millisecond) // it may be about to end
		}
		for _, pid := range left {
			t.Errorf("left running: process %d (%s)", pid, commandLine(pid))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return mark
}

// marked lists the living processes, other than this one, whose environment
// holds the mark.
func marked(mark string) (pids []int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(path) // empty for a zombie
		if err == nil && bytes.Contains(append(env, 0), append([]byte(mark), 0)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "ended since"
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}
