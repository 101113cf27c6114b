//go:build linux && amd64

package main

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kind is a program to test. It works for one round when it reads a line, and prints a line: its
// result, and its own counts as NAME=CALLS.
type kind struct {
	name    string
	source  string
	compile []string // followed by file and source; if empty, the source is executed
	execute []string // followed by the source; if empty, the file is executed
	env     string
	// counted are functions whose calls the program does not count; gdb counts the calls of a
	// round. file is a part of the path of the file that contains them.
	file    string
	counted []string
	// kept is the function whose calls a probe counts that outlives the gateway.
	kept string
	// timed are functions that can be timed: control leaves them only by their returns, or by
	// nothing else that the program counts.
	timed []string
}

var kinds = []kind{
	{name: "bash", source: "victim.sh", execute: []string{"bash"}, file: "/bash",
		counted: []string{"execute_command_internal", "expand_string", "find_variable", "evalexp", "make_word"}, kept: "find_variable"},
	{name: "python", source: "victim.py", execute: []string{"/usr/bin/python3"}, env: "PYTHONHASHSEED=0", file: "libsqlite3",
		counted: []string{"sqlite3_step", "sqlite3_bind_int64", "sqlite3_column_type", "sqlite3_reset"}, kept: "sqlite3_step"},
	{name: "c++", source: "victim.cc", compile: []string{"g++", "-O2", "-g", "-pthread", "-std=c++17", "-o"}, kept: "counted_fall", timed: []string{"counted_mix", "counted_walk"}},
	{name: "c", source: "fragile.c", compile: []string{"gcc", "-O2", "-g", "-fcf-protection=none", "-o"}, kept: "counted_step"},
	{name: "go", source: "server/main.go", compile: []string{"go", "build", "-o"}, kept: "main.countedStep", timed: []string{"main.countedMix", "main.countedFold"}},
	{name: "rust", source: "victim.rs", compile: []string{"rustc", "-O", "-g", "-o"}, kept: "counted_fall", timed: []string{"counted_mix", "counted_walk"}},
}

//go:embed victims
var sources embed.FS

// build returns the command of the program, which it builds in a folder.
func (k kind) build(dir string) ([]string, error) {
	text, err := sources.ReadFile("victims/" + k.source)
	if err != nil {
		return nil, err
	}
	source, file := filepath.Join(dir, filepath.Base(k.source)), filepath.Join(dir, "victim-"+k.name)
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return nil, err
	}
	if len(k.compile) == 0 {
		return append(k.execute, source), nil
	}
	cmd := exec.Command(k.compile[0], append(k.compile[1:], file, source)...)
	cmd.Dir = dir // outside the module
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build %s: %w\n%s", k.source, err, out)
	}
	return []string{file}, nil
}

// victim is a running program.
type victim struct {
	kind
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	calm  string // its result without probes
}

// errHangs reports that a victim does not finish a round.
var errHangs = errors.New("it hangs")

func start(k kind, command []string) (*victim, error) {
	v := &victim{kind: k, cmd: exec.Command(command[0], command[1:]...), lines: make(chan string)}
	v.cmd.Env = append(os.Environ(), k.env)
	v.cmd.Stderr = os.Stderr
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(v.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			v.lines <- lines.Text()
		}
	}()
	// After three rounds all libraries are loaded and all lazy symbols are bound.
	for range 3 {
		if v.calm, _, err = v.round(time.Minute, nil); err != nil {
			v.kill()
			return nil, err
		}
	}
	return v, nil
}

func (v *victim) pid() int { return v.cmd.Process.Pid }

// slowAfter is the time after which a round calls slow, because there are too many probes.
const slowAfter = 2 * time.Second

// round makes the victim work, and returns its result and its counts.
func (v *victim) round(patience time.Duration, slow func()) (result string, counts map[string]int64, err error) {
	if _, err := fmt.Fprintln(v.in); err != nil {
		return "", nil, v.death()
	}
	slowTimer, hangs := time.NewTimer(slowAfter), time.NewTimer(patience)
	defer slowTimer.Stop()
	defer hangs.Stop()
	for {
		select {
		case line, ok := <-v.lines:
			if !ok {
				return "", nil, v.death()
			}
			result, counts = parseRound(line)
			return result, counts, v.settle(hangs.C)
		case <-slowTimer.C:
			if slow != nil {
				slow()
			}
		case <-hangs.C:
			return "", nil, errHangs
		}
	}
}

// settle waits until a victim that does not count its calls reads its next line: until then it
// still calls functions after it has printed the result.
func (v *victim) settle(hangs <-chan time.Time) error {
	const pause = 200 * time.Microsecond
	for len(v.counted) > 0 {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", v.pid()))
		if err != nil {
			return v.death()
		}
		if bytes.HasPrefix(call, []byte("0 0x0 ")) { // read, of standard input
			return nil
		}
		select {
		case <-time.After(pause):
		case <-hangs:
			return errHangs
		}
	}
	return nil
}

func parseRound(line string) (result string, counts map[string]int64) {
	result, rest, _ := strings.Cut(line, " ")
	counts = make(map[string]int64)
	for _, field := range strings.Fields(rest) {
		name, n, _ := strings.Cut(field, "=")
		counts[name], _ = strconv.ParseInt(n, 10, 64)
	}
	return result, counts
}

// death returns an error that tells how the victim ended.
func (v *victim) death() error {
	err := v.cmd.Wait()
	if err == nil {
		return errors.New("it ended")
	}
	return fmt.Errorf("it ended: %w", err)
}

func (v *victim) kill() {
	v.cmd.Process.Kill()
	for range v.lines { // until the victim ends
	}
	v.cmd.Wait() // the error tells that it was killed
}
