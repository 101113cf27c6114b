//go:build linux && amd64

package subject

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// OnCPU binds all threads of this process to one CPU, and so the programs that it starts: a
// thread held by another process then waits less for its wake-up. restore undoes it.
func OnCPU(cpu int) (restore func() error, err error) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	return func() error { return bind("self", &before) }, PinProcess("self", cpu)
}

// PinProcess binds all threads of a process to one CPU; later threads inherit this. The process
// is named as in /proc.
func PinProcess(process string, cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	return bind(process, &one)
}

func bind(process string, to *unix.CPUSet) error {
	tasks, err := filepath.Glob(filepath.Join("/proc", process, "task", "*"))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, to); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot choose a CPU: %w", err)
		}
	}
	return nil
}
