//go:build linux

package criu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is the name of CRIU's file.
const program = "criu"

// Program is a CRIU that works on this machine.
type Program struct {
	path  string
	level string // option for the detail of its log
}

// quietly returns a CRIU that logs only errors.
func quietly(path string) Program { return Program{path, "-v1"} }

// Path returns the path of CRIU's file.
func (p Program) Path() string { return p.path }

// Finder looks for a CRIU that works. The trial takes a moment, so a Finder remembers the
// result until the file changes. The zero Finder looks in the directory of this program
// and then in the PATH. Any goroutine may use it.
type Finder struct {
	Named string // the only file to try, unless ""

	mu    sync.Mutex
	tried map[file]error
}

// file identifies a version of a file.
type file struct {
	path          string
	inode         uint64
	changed, size int64
}

// Find returns a CRIU that works. The error describes what is wrong with each one found;
// it wraps an Unfit for each.
func (f *Finder) Find(ctx context.Context) (Program, error) {
	candidates := []string{f.Named}
	if f.Named == "" {
		candidates = installed()
	}
	if len(candidates) == 0 {
		return Program{}, errors.New("there is no program criu, neither beside mirador nor in the PATH")
	}
	var wrong unfit
	for _, path := range candidates {
		err := f.try(ctx, path)
		if err == nil {
			return quietly(path), nil
		}
		wrong = append(wrong, err)
	}
	return Program{}, wrong
}

// try returns the result of the trial of a CRIU, from memory if possible.
func (f *Finder) try(ctx context.Context, path string) error {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return &Unfit{Path: path, Does: "cannot be used", Reason: err.Error()}
	}
	now := file{path, s.Ino, s.Ctim.Nano(), s.Size}
	f.mu.Lock()
	defer f.mu.Unlock()
	err, known := f.tried[now]
	if !known {
		if err = fit(ctx, path); ctx.Err() != nil {
			return err // the context ended, so this does not concern CRIU
		}
		if f.tried == nil {
			f.tried = make(map[file]error)
		}
		f.tried[now] = err
	}
	return err
}

func installed() []string {
	var list []string
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), program); isProgram(beside) {
			list = append(list, beside)
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		list = append(list, path)
	}
	return list
}

func isProgram(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0
}

// fit lets a CRIU check the kernel, and then save and restore a process.
func fit(ctx context.Context, path string) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return trial(path)
}

// check lets CRIU check the kernel. CRIU accepts many machines on which it cannot save a
// process.
func check(ctx context.Context, path string) error {
	const patience = time.Minute // it took more than ten seconds on a busy machine
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "check")
	// CRIU starts children, which it stops. They have its output too, so they must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	why := reason(string(out))
	if why == "" {
		why = err.Error()
	}
	return &Unfit{Path: path, Does: "does not work here", Reason: why, Log: string(out)}
}
