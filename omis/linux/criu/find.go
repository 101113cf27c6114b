//go:build linux

package criu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// program is the file's name.
const program = "criu"

// Program is a CRIU that works here.
type Program struct {
	path  string
	level string // how much it writes into its log, the option
}

// quietly is a CRIU that writes errors only.
func quietly(path string) Program { return Program{path, "-v1"} }

// Path is where it lies.
func (p Program) Path() string { return p.path }

// Finder looks for a CRIU that works. It remembers what it found out of a file
// for as long as the file is the same, for the trial takes a moment. The zero
// Finder looks beside this program's own file and then in the PATH. It may be used
// by any goroutine.
type Finder struct {
	Named string // the only one to consider, if given

	mu    sync.Mutex
	tried map[file]error
}

// file is a file as it is now.
type file struct {
	path          string
	inode         uint64
	changed, size int64
}

// Find returns a CRIU that works. The error says of each that there is what is
// wrong with it; it wraps an Unfit for each.
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

// try finds out whether a CRIU works, or remembers it.
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
			return err // says nothing of the CRIU
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

// fit has a CRIU try what it needs of the kernel, and then do what it is for.
func fit(ctx context.Context, path string) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return trial(path)
}

// check has CRIU try what it needs of the kernel. It is content with many a
// machine on which it cannot save a process.
func check(ctx context.Context, path string) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "check").CombinedOutput()
	if err == nil {
		return nil
	}
	why := reason(string(out))
	if why == "" {
		why = err.Error()
	}
	return &Unfit{Path: path, Does: "does not work here", Reason: why, Log: string(out)}
}
