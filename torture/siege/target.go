//go:build linux && amd64

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/examples/child"
)

//go:embed besieged/target.c
var source []byte

// functions is the number of the target's functions that can be probed.
const functions = 10000

// compile builds the target where all users can execute it.
func compile(dir string) (string, error) {
	path := filepath.Join(dir, "target")
	cmd := exec.Command("gcc", "-O1", "-pthread", "-x", "c", "-", "-o", path)
	cmd.Stdin = bytes.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot compile the target: %w\n%s", err, out)
	}
	return path, nil
}

// target is a running program. One goroutine uses it.
type target struct {
	*child.Child
	text []byte // its code without probes
}

func startTarget(program string, uid uint32) (*target, error) {
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	running, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	t := &target{Child: running}
	if _, err := t.tell("call 1"); err != nil { // loads everything that the program needs
		return nil, err
	}
	t.text, err = t.code()
	return t, err
}

// tell sends a line and returns the answer.
func (t *target) tell(line string) (string, error) {
	const patience = 20 * time.Second
	answer, err := t.Ask(patience, "%s", line)
	if errors.Is(err, child.ErrHangs) {
		err = fmt.Errorf("%w after %q%s", err, line, t.threads())
	}
	return answer, err
}

// threads describes the program's threads according to /proc, a line for each.
func (t *target) threads() string {
	var b strings.Builder
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", t.PID))
	for _, task := range tasks {
		fmt.Fprintf(&b, "\n%s", filepath.Base(task))
		for _, file := range []string{"status", "syscall"} {
			text, _ := os.ReadFile(filepath.Join(task, file)) // an error means that the thread has ended
			for line := range strings.Lines(string(text)) {
				if name, _, named := strings.Cut(line, ":"); !named || name == "State" || name == "TracerPid" || name == "SigPnd" || name == "ShdPnd" {
					fmt.Fprintf(&b, " %s", strings.Join(strings.Fields(line), " "))
				}
			}
		}
	}
	return b.String()
}

// code returns the program's code in memory.
func (t *target) code() ([]byte, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", t.PID))
	if err != nil {
		return nil, err
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.PID))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	var code []byte
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); n < 3 || mode != "r-xp" || !strings.Contains(line, "/") {
			continue
		}
		part := make([]byte, end-start)
		if _, err := memory.ReadAt(part, start); err != nil {
			return nil, err
		}
		code = append(code, part...)
	}
	return code, nil
}

// unharmed checks that the target lives, computes correct results, and has its original code.
func (t *target) unharmed() error {
	want := uint64(1)
	for n := range uint64(functions) {
		want = want*1103515245 + 10000 + n
	}
	answer, err := t.tell("call 1")
	if err != nil {
		return err
	}
	if answer != fmt.Sprint(want) {
		return fmt.Errorf("the target returned %s, want %d", answer, want)
	}
	code, err := t.code()
	if err != nil {
		return err
	}
	if !bytes.Equal(code, t.text) {
		return errors.New("the code of the target has changed")
	}
	return nil
}
