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

// NoneLeft returns an environment entry for processes that a test starts. At the end of the
// test, every process that inherited it must have ended, including children in their own
// sessions. Remaining processes fail the test and are killed.
//
// Start uses NoneLeft for its target. A test whose gateway starts targets passes the entry to
// the gateway. Cleanups run in reverse order, so the test must call NoneLeft before it
// registers the cleanup that ends the gateway.
func NoneLeft(t testing.TB) string {
	t.Helper()
	mark := fmt.Sprintf("%s%d.%d", markName, os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		left := marked(mark)
		for end := time.Now().Add(patience / 10); len(left) > 0 && time.Now().Before(end); left = marked(mark) {
			time.Sleep(5 * time.Millisecond) // the process may be about to end
		}
		for _, pid := range left {
			t.Errorf("left running: process %d (%s)", pid, commandLine(pid))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return mark
}

// marked lists the live processes, except this one, whose environment contains the mark.
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
