//go:build linux && amd64

package peers

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"mirador/bench/subject"
)

// Counter is a tool that counts the system calls of a running program by name. stop ends
// the tool; the program continues.
type Counter struct {
	Name  string
	Start func(t *subject.Target) (stop func() error, err error)
}

// Counters returns all such tools.
func (p *Peers) Counters() []Counter {
	return []Counter{
		{"bpftrace", bpftraceCalls},
		{"strace -c", straceCalls},
	}
}

func bpftraceCalls(t *subject.Target) (func() error, error) {
	path, err := find("bpftrace")
	if err != nil {
		return nil, err
	}
	b, err := beginBpftrace(path, t.PID(), fmt.Sprintf("tracepoint:raw_syscalls:sys_enter /pid == %d/ { @[args->id] = count(); }", t.PID()))
	if err != nil {
		return nil, err
	}
	return b.interrupt, nil
}

func straceCalls(t *subject.Target) (func() error, error) {
	path, err := find("strace")
	if err != nil {
		return nil, err
	}
	b, err := launch(exec.Command(path, "-c", "-p", fmt.Sprint(t.PID())))
	if err != nil {
		return nil, err
	}
	return b.interrupt, b.await("attached")
}

// interrupt ends a tool, which must then print its counts.
func (t *tool) interrupt() error {
	_ = t.cmd.Process.Signal(syscall.SIGINT)
	if len(t.said()) == 0 {
		return errors.New(t.name() + " counted nothing")
	}
	return nil
}
