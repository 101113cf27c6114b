//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/criu"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
)

// Launch: see node.Node.
func (n *Node) Launch(l node.Launch) (omis.ProcID, error) {
	o, a, err := n.owners.launch(launch{l})
	if err != nil {
		return omis.ProcID{}, err
	}
	err = a.wait()
	return o.proc, err
}

// launch is the first task of the owner of a process to be.
type launch struct{ node.Launch }

func (c launch) do(o *owner) error {
	pid, err := c.start()
	if err != nil {
		return err
	}
	o.child = true
	if err := o.await(pid); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		delete(o.tracer.threads, pid)
		return err
	}
	o.tracer.whole, o.halts.halted = true, true
	o.node.owners.enter(o)
	return nil
}

// start forks and executes on the owner's thread, which has to be the tracer and the parent.
// The process gets a session of its own, so that no terminal's Ctrl-C reaches it.
func (l launch) start() (pid int, err error) {
	path, err := exec.LookPath(l.Path)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return 0, omis.Errorf(omis.ParameterError, "cannot start %s: %w", l.Path, errors.Unwrap(err))
	}
	files, err := l.files()
	for _, f := range files {
		if f != nil && f != os.Stdout && f != os.Stderr {
			defer f.Close()
		}
	}
	if err != nil {
		return 0, omis.Errorf(omis.ParameterError, "cannot start %s: %w", l.Path, err)
	}
	env := l.Env
	if env == nil {
		env = os.Environ()
	}
	criu.WithholdFiles()
	pid, err = syscall.ForkExec(path, append([]string{l.Path}, l.Args...), &syscall.ProcAttr{
		Dir: l.Dir, Env: env,
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setsid: true},
	})
	if err != nil {
		return 0, omis.Errorf(omis.ParameterError, "cannot start %s: %w", l.Path, err)
	}
	return pid, nil
}

// files opens the files for stdin, stdout and stderr.
func (l launch) files() ([3]*os.File, error) {
	files := [3]*os.File{nil, os.Stdout, os.Stderr}
	names := [3]string{os.DevNull}
	for i, name := range l.IO {
		if i < len(names) && name != "" {
			names[i] = name
		}
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(l.Dir, name)
		}
		flags := os.O_RDONLY
		if i > 0 {
			flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		f, err := os.OpenFile(name, flags, 0o666)
		if err != nil {
			return files, err
		}
		files[i] = f
	}
	return files, nil
}

// nap is the time for which a launched process sleeps before its first instruction if the
// monitor dies while it takes the process over.
const nap = 5 * time.Second

// await takes over a process that has just executed its program and is stopped before its
// first instruction. An attachment by PTRACE_TRACEME cannot be interrupted and has to be
// exchanged for PTRACE_SEIZE; the process must not run in between, and must not stay stopped
// if the monitor dies. So it takes a nap there, from which it continues by itself.
func (o *owner) await(pid int) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		return omis.Errorf(omis.OSError, "process %d ended before it began", pid)
	}
	p, err := proc.Identify(pid)
	if err != nil {
		return err
	}
	o.proc = p
	memory, err := openMemory(pid)
	if err != nil {
		return omis.Errorf(omis.OSError, "cannot take over process %d: %w", pid, unwrapPath(err))
	}
	defer memory.Close()
	if err := o.exchange(memory); err != nil {
		var known *omis.Error
		if errors.As(err, &known) {
			return err
		}
		return omis.Errorf(omis.OSError, "cannot take over process %d: %w", pid, err)
	}
	return nil
}

func (o *owner) exchange(memory *os.File) error {
	pid := o.proc.PID
	stub, cleanUp, err := caveStub(pid, memory)
	if err != nil {
		return err
	}
	var regs ptrace.Regs
	if err := ptrace.GetRegs(pid, &regs); err != nil {
		return err
	}
	n := napping{memory: memory, stub: stub, cleanUp: cleanUp, begin: resident.Resumed(regs)}
	if err := errors.Join(n.lieDown(pid), ptrace.Detach(pid, 0), ptrace.Seize(pid)); err != nil {
		return err
	}
	t := &thread{tid: pid, pid: pid, halted: true}
	o.tracer.threads[pid] = t
	o.tracer.interrupt(t)
	if !o.tracer.pump(nap, func() bool { return t.stopped() }) {
		return fmt.Errorf("it does not stop")
	}
	asleep, err := n.getUp(pid)
	if err == nil && !asleep {
		err = fmt.Errorf("it has begun already because the machine is too busy")
	}
	return err
}

func sleepCall(resumed *ptrace.Regs, d time.Duration) resident.Call {
	c := resident.Call{Number: unix.SYS_NANOSLEEP, Args: [6]uint64{resident.BlockAt(resumed)}}
	binary.LittleEndian.PutUint64(c.Block[:], uint64(d/time.Second))
	return c
}
