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

// stuck tells where the threads of a process stand that ought to have said
// something: a line for each, as the kernel sees it, and what gdb sees if nobody
// else traces the process.
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
