package subject

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stuck describes where the threads of a process are, after the process has not printed an
// expected line: a line from /proc for each thread, and gdb's output if no other process traces
// this one.
func stuck(pid int) string {
	var b strings.Builder
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		b.WriteString(filepath.Base(task))
		status, _ := os.ReadFile(filepath.Join(task, "status"))
		for line := range strings.Lines(string(status)) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
			case "State", "TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigCgt", "nonvoluntary_ctxt_switches":
				fmt.Fprintf(&b, " %s=%s", name, strings.TrimSpace(value))
			}
		}
		for _, name := range []string{"wchan", "syscall"} {
			text, _ := os.ReadFile(filepath.Join(task, name))
			fmt.Fprintf(&b, " %s=%s", name, strings.TrimSpace(string(text)))
		}
		b.WriteByte('\n')
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	seen, _ := exec.CommandContext(ctx, "gdb", "-q", "-nx", "-batch", "-p", fmt.Sprint(pid),
		"-ex", "bt 6", "-ex", "x/8i $pc", "-ex", "info registers").CombinedOutput()
	b.Write(seen)
	return b.String()
}
