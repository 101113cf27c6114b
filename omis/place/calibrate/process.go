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

// process is a running dummy.
type process struct {
	folder string
	lock   *os.File // lock of the directory, held during the monitor's life
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	id     omis.ProcID
	first  uint64 // address of its functions
}

// patience is the time allowed for what normally takes a millisecond, because the machine
// may be busy.
const patience = 30 * time.Second

// start starts a dummy. identify returns the ProcID of its pid.
func start(identify func(int) (omis.ProcID, error)) (*process, error) {
	d := &process{}
	if err := d.begin(identify); err != nil {
		d.end()
		return nil, fmt.Errorf("cannot start the dummy process for calibration: %w", err)
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
	file, first := programFile()
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

// execute executes a file that was just written. The kernel refuses this while another
// process has the file open for writing, and a process that this program has forked
// meanwhile may have it open until it executes a program itself; so execute tries again.
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

// folders is the pattern of the names of dummies' directories.
const folders = "mirador-dummy-*"

// sweep removes the directories of monitors that were killed while they calibrated. Their
// dummies ended with their input.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folders)) // the pattern is valid
	for _, folder := range left {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < beginning {
			continue
		}
		if lock, err := lockFolder(folder); err == nil {
			_ = os.RemoveAll(folder) // another user's directory remains
			lock.Close()
		}
	}
}

// beginning is the longest time from making a directory to locking it.
const beginning = time.Minute

// lockFolder locks a directory for this monitor; it fails if another monitor has locked
// it.
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

// find finds the address at which the program was loaded. The answer to a first order
// proves that it is loaded; that order makes one call.
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
	return errors.New("it does not reach its entry")
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

// at returns the address of a place in a function.
func (d *process) at(function int, offset uint64) uint64 {
	return d.first + uint64(function)*stride + offset
}

// call calls a function a number of times, and returns the nanoseconds of one call.
func (d *process) call(function, calls, work int) (float64, error) {
	return d.callApart(function, calls, work, 0)
}

// apart is the greatest pause between calls, in turns of a loop: three times the step of
// time stamp counters that do not advance by ones. Calls in step with such a counter
// would all be measured too long, or all too short.
const apart = 127

// callApart makes random pauses between calls, up to a turns of a loop; a+1 must be a
// power of two.
func (d *process) callApart(function, calls, work, a int) (float64, error) {
	late := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	order := [4]uint64{d.at(function, 0), uint64(calls), uint64(work), uint64(a)}
	if err := binary.Write(d.in, binary.LittleEndian, order); err != nil {
		return 0, err
	}
	var ns uint64
	if err := binary.Read(d.out, binary.LittleEndian, &ns); err != nil {
		return 0, fmt.Errorf("the dummy process for calibration did not answer within %v: %w", patience, err)
	}
	return float64(ns) / float64(calls), nil
}
