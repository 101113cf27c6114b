//go:build linux && amd64

package probe

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// contenders are the ways to probe; the first is what the others are compared with.
func contenders() ([]contender, func() error, error) {
	bare, err := newBare()
	if err != nil {
		return nil, nil, err
	}
	kernel, err := openMonitor(true)
	if err != nil {
		return nil, nil, errors.Join(err, bare.close())
	}
	trap, err := openMonitor(false)
	if err != nil {
		return nil, nil, errors.Join(err, kernel.close(), bare.close())
	}
	timed := func(s subject) bool { return s.timed }
	all := []contender{
		{name: "bare eBPF", start: bare.start},
		{name: "mirador, kernel", start: kernel.start},
		{name: "bare eBPF, uretprobe", start: bare.startReturning, suits: timed},
		{name: "mirador, trap", start: trap.start},
	}
	if _, err := exec.LookPath("bpftrace"); err == nil {
		all = append(all, contender{name: "bpftrace", start: startBpftrace})
	}
	return all, func() error { return errors.Join(trap.close(), kernel.close(), bare.close()) }, nil
}

// startBpftrace counts or times by thread, as its manual does; it has no probe at
// returns but the uretprobe.
func startBpftrace(t *target, s subject) (func() error, error) {
	script := fmt.Sprintf("uprobe:%s:%s { @[tid] = count(); }", t.path, s.function)
	if s.timed {
		script = fmt.Sprintf("uprobe:%[1]s:%[2]s { @at[tid] = nsecs; } uretprobe:%[1]s:%[2]s /@at[tid]/ { @[tid] = stats(nsecs - @at[tid]); delete(@at[tid]); }", t.path, s.function)
	}
	cmd := exec.Command("bpftrace", "-p", fmt.Sprint(t.pid()), "-e", `BEGIN { printf("begun\n"); } `+script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "begun") {
			return func() error {
				defer late.Stop()
				_ = cmd.Process.Signal(syscall.SIGINT)
				for lines.Scan() {
					continue
				}
				return cmd.Wait()
			}, nil
		}
	}
	return nil, errors.Join(errors.New("bpftrace did not begin"), cmd.Wait())
}
