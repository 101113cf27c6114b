//go:build linux

package proc_test

import (
	"bufio"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis/host/proc"
)

// TestForked starts a shell with a subshell, a subshell of that one, and commands. Only
// the subshells execute the shell's program.
func TestForked(t *testing.T) {
	cmd := exec.Command("/bin/bash", "-c", `exec 3<&0; sleep 60 & command=$!; ( ( echo $BASHPID; read -u 3 x; echo ) & echo $BASHPID; wait; echo ) & wait $!; kill $command`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		cmd.Wait()
	}()
	var want []int
	for lines := bufio.NewScanner(out); len(want) < 2 && lines.Scan(); {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, pid)
	}
	slices.Sort(want)
	var got []int
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !slices.Equal(got, want); time.Sleep(time.Millisecond) {
		got = proc.Forked(cmd.Process.Pid) // the command may not have been executed yet
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		t.Errorf("forked %d, want %d", got, want)
	}
	if list := proc.Forked(want[0]); len(list) > 1 {
		t.Errorf("a subshell forked %d", list)
	}
}
