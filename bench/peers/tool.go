//go:build linux && amd64

package peers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mirador/bench/subject"
)

// tool is a peer that runs as a process of its own.
type tool struct {
	cmd   *exec.Cmd
	lines chan string // standard output and standard error
}

// launch starts a tool in a process group of its own, so that an interrupt from the
// terminal does not reach it.
func launch(cmd *exec.Cmd) (*tool, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = write, write
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	err = cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	t := &tool{cmd: cmd, lines: make(chan string, 1000)}
	go func() {
		defer close(t.lines)
		defer read.Close()
		for in := bufio.NewScanner(read); in.Scan(); {
			t.lines <- in.Text()
		}
	}()
	return t, nil
}

// await waits until the tool prints a line that contains a text.
func (t *tool) await(text string) error {
	late := time.After(subject.Patience)
	last := "nothing"
	for {
		select {
		case line, open := <-t.lines:
			switch {
			case !open:
				_ = t.cmd.Wait()
				return &subject.Missing{Why: fmt.Sprintf("%s does not run here: %s", t.name(), last)}
			case strings.Contains(line, text):
				return nil
			case strings.TrimSpace(line) != "":
				last = strings.TrimSpace(line)
			}
		case <-late:
			t.kill()
			return &subject.Missing{Why: fmt.Sprintf("%s was not ready within %v; its last output: %s", t.name(), subject.Patience, last)}
		}
	}
}

func (t *tool) name() string { return filepath.Base(t.cmd.Path) }

func (t *tool) kill() {
	_ = t.cmd.Process.Kill()
	for range t.lines {
	}
	_ = t.cmd.Wait()
}

// said waits until the tool ends, and returns what it printed since await.
func (t *tool) said() []string {
	late := time.AfterFunc(subject.Patience, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	var said []string
	for line := range t.lines {
		said = append(said, line)
	}
	_ = t.cmd.Wait() // with any status
	return said
}

// ending returns the Standing of a tool that ends when its target does.
func ending(t *subject.Target, b *tool, task subject.Task, mean func(said []string) (float64, error)) *subject.Standing {
	var said []string
	end := sync.OnceValue(func() error {
		err := t.End()
		said = b.said()
		return err
	})
	s := &subject.Standing{Target: t, Function: task.Function, Stop: end}
	if task.Timed {
		s.Mean = func() (float64, error) {
			if err := end(); err != nil {
				return 0, err
			}
			return mean(said)
		}
	}
	return s
}

// interrupted returns the Standing of a tool that ends by an interrupt.
func interrupted(t *subject.Target, b *tool, task subject.Task, mean func(said []string) (float64, error)) *subject.Standing {
	end := sync.OnceValue(func() []string {
		_ = b.cmd.Process.Signal(syscall.SIGINT)
		return b.said()
	})
	s := &subject.Standing{Target: t, Function: task.Function, Stop: func() error {
		end()
		return t.End()
	}}
	if task.Timed {
		s.Mean = func() (float64, error) { return mean(end()) }
	}
	return s
}

// output runs a command to its end and returns its output.
func output(cmd *exec.Cmd) (string, error) {
	late := time.AfterFunc(subject.Patience, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer late.Stop()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", &subject.Missing{Why: fmt.Sprintf("%s: %v: %s", strings.Join(cmd.Args, " "), err, lastLine(string(said)))}
	}
	return string(said), nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
