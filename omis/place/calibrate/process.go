//go:build linux

package calibrate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// process is a dummy that runs.
type process struct {
	folder string
	lock   *os.File // on the folder, for as long as the monitor lives
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	id     omis.ProcID
	first  uint64 // where its functions are
}

// patience is how long a dummy may take for what takes a millisecond, on a machine where
// others are busy.
const patience = 30 * time.Second

// start starts a dummy. identify finds it again by its pid.
func start(identify func(int) (omis.ProcID, error)) (*process, error) {
	d := &process{}
	if err := d.begin(identify); err != nil {
		d.end()
		return nil, fmt.Errorf("cannot start a process to try probes on: %w", err)
	}
	return d, nil
}

func (d *process) begin(identify func(int) (omis.ProcID, error)) (err error) {
	if d.folder, err = os.MkdirTemp("", folders); err != nil {
		return err
	}
	if d.lock, err = lockFolder(d.folder); err != nil {
		return err
	}
	path := filepath.Join(d.folder, "dummy")
	file, first := program()
	if err := os.WriteFile(path, file, 0o700); err != nil {
		return err
	}
	if err := d.execute(path); err != nil {
		return err
	}
	if err := d.find(path, first); err != nil {
		return err
	}
	d.id, err = identify(d.cmd.Process.Pid)
	return err
}

// execute executes a file that was just written. Another process that this program has
// forked meanwhile may have the file open for writing, until it executes a program itself:
// until then the kernel refuses.
func (d *process) execute(path string) (err error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		d.cmd = exec.Command(path)
		if d.in, err = d.cmd.StdinPipe(); err != nil {
			return err
		}
		if d.out, err = d.cmd.StdoutPipe(); err != nil {
			return err
		}
		if err = d.cmd.Start(); !errors.Is(err, unix.ETXTBSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// folders are the names of those where dummies are.
const folders = "mirador-dummy-*"

// sweep removes what monitors have left that were killed while they calibrated. Their
// dummies have ended with their input.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folders)) // the pattern is a good one
	for _, folder := range left {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < beginning {
			continue
		}
		if lock, err := lockFolder(folder); err == nil {
			_ = os.RemoveAll(folder) // another user's stays
			lock.Close()
		}
	}
}

// beginning is how long a monitor may take from making a folder to locking it.
const beginning = time.Minute

// lockFolder locks a folder for this monitor; an error may be that another one has it.
func lockFolder(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// find finds out where the program was loaded. That it has been, its answer to a first
// order tells: one to call nothing would not do.
func (d *process) find(path string, first uint64) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		maps, err := proc.Maps(d.cmd.Process.Pid)
		if err != nil {
			return err
		}
		for _, m := range maps {
			if m.Path == path && m.Exec {
				d.first = m.Start - m.Offset + first
				_, err := d.call(0, 1, 1)
				return err
			}
		}
	}
	return errors.New("it does not come to its beginning")
}

// end ends the dummy. Its probes must have been removed.
func (d *process) end() {
	if d.cmd != nil && d.cmd.Process != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
	_ = os.RemoveAll(d.folder)
	if d.lock != nil {
		d.lock.Close()
	}
}

// at is the address of a place of a function.
func (d *process) at(function int, offset uint64) uint64 {
	return d.first + uint64(function)*stride + offset
}

// call has a function called, and tells how many nanoseconds one call took.
func (d *process) call(function, calls, work int) (float64, error) {
	return d.callApart(function, calls, work, 0)
}

// apart has calls be apart by 0 to 127 turns of a loop, by chance: three times as much as
// the steps that time stamp counters go on by, where they do not go on by ones. Calls that
// keep step with such a counter are all measured too long, or too short.
const apart = 127

// callApart has calls be apart by chance; a is a number of bits that are all set.
func (d *process) callApart(function, calls, work, a int) (float64, error) {
	late := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	order := [4]uint64{d.at(function, 0), uint64(calls), uint64(work), uint64(a)}
	if err := binary.Write(d.in, binary.LittleEndian, order); err != nil {
		return 0, err
	}
	var ns uint64
	if err := binary.Read(d.out, binary.LittleEndian, &ns); err != nil {
		return 0, fmt.Errorf("the process to try probes on said nothing more within %v: %w", patience, err)
	}
	return float64(ns) / float64(calls), nil
}
