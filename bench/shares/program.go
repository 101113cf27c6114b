//go:build linux && amd64

package shares

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/bench/subject"
)

// sample is a real program, or a library that a program loads.
type sample struct {
	name string
	file string // suffix of the path of the file whose functions are judged
	in   string // its Debian package, if it may be missing
	goal float64
	// command returns the command that runs the program in a directory of its own.
	command func(dir string) *exec.Cmd
}

// Goals: percentages of functions that code in the program can count.
const (
	goalInC  = 99.5
	goalInGo = 97
)

// programs returns the programs whose shares are published. Mirador is the server in Go.
func programs(mirador string) []sample {
	return []sample{
		{"redis-server", "/redis-check-rdb", "redis-server", goalInC, func(dir string) *exec.Cmd {
			return exec.Command("redis-server", "--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--save", "", "--dir", dir)
		}},
		{"nginx", "/nginx", "nginx-light", goalInC, func(dir string) *exec.Cmd {
			text := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log stderr; events {} http { access_log off; server { listen unix:%[1]s/socket; } }", dir)
			path := filepath.Join(dir, "conf")
			_ = os.WriteFile(path, []byte(text), 0o600) // if it fails, nginx reports the missing file
			return exec.Command("nginx", "-p", dir, "-c", path)
		}},
		library("libsqlite3", "/libsqlite3.so.0", "libsqlite3-0"),
		library("libpython", "/libpython3.11.so.1.0", "libpython3.11"),
		library("libcrypto", "/libcrypto.so.3", "libssl3"),
		library("libstdc++", "/libstdc++.so.6", "libstdc++6"),
		{"mirador serve", "/" + filepath.Base(mirador), "", goalInGo, func(dir string) *exec.Cmd {
			return exec.Command(mirador, "serve", "--listen", "off", "--calibrate", "when-needed", "--socket", filepath.Join(dir, "s"), "--data", filepath.Join(dir, "data"))
		}},
	}
}

// libraries is Debian's directory of libraries.
const libraries = "/usr/lib/x86_64-linux-gnu"

// library returns a small program that is made to load a library.
func library(name, file, from string) sample {
	return sample{name, file, from, goalInC, func(string) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+libraries+file)
		return cmd
	}}
}

// running is a program that was started.
type running struct {
	cmd  *exec.Cmd
	dir  string
	path string // of the file, as in the mappings
}

// start starts a program, and waits until it has loaded the file. It returns a
// *subject.Missing if this machine does not have the program.
func (p sample) start(ctx context.Context) (r *running, err error) {
	r = new(running)
	if r.dir, err = os.MkdirTemp("", "mirador-bench-shares-"); err != nil {
		return nil, err
	}
	r.cmd = p.command(r.dir)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = r.cmd.Start()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		err = &subject.Missing{Why: fmt.Sprintf("%s is not installed (package %s)", p.name, p.in)}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	if err := r.await(ctx, p); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// await waits until the program sleeps with the file mapped, and so has been loaded.
func (r *running) await(ctx context.Context, p sample) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.cmd.Process.Pid))
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(begin) > loading:
			return &subject.Missing{Why: fmt.Sprintf("%s is not installed (package %s), or does not start", p.name, p.in)}
		}
		if r.waits() {
			if r.path = mappedPath(string(maps), p.file); r.path != "" {
				return nil
			}
		}
	}
}

// loading is the time limit for starting a program.
const loading = 10 * time.Second

// waits reports whether the main thread sleeps in a system call.
func (r *running) waits() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return err == nil && found && strings.HasPrefix(state, "S")
}

// mappedPath returns the path of the executable mapping of a file whose path has this
// suffix; for a library, the suffix may name a symbolic link.
func mappedPath(maps, end string) string {
	real := filepath.Base(end)
	if to, err := filepath.EvalSymlinks(libraries + end); err == nil {
		real = filepath.Base(to)
	}
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) == 6 && strings.Contains(fields[1], "x") && filepath.Base(fields[5]) == real {
			return fields[5]
		}
	}
	return ""
}

func (r *running) end() error {
	_ = r.cmd.Process.Kill() // it may have ended already
	_ = r.cmd.Wait()
	return os.RemoveAll(r.dir)
}
