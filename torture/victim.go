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

// kind is a program to be tortured. It works for one round when it is given a line,
// and answers with a line: its result, and what it counted as NAME=CALLS.
type kind struct {
	name    string
	source  string
	compile []string // source and file are appended; none: the source is executed
	execute []string // before the source; none: the file is executed
	env     string
	// counted are functions whose calls the program does not count. How often it calls
	// them in a round is asked of gdb. file is part of the name of the file they are in.
	file    string
	counted []string
	// kept is one whose calls a probe counts that outlives the gateway.
	kept string
	// timed are functions that are left by their returns only, or by nothing else that
	// the program counts. A timer measures them.
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

// build makes the command line of a program, in a folder.
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
	cmd.Dir = dir // outside of the module
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
	calm  string // its result when nobody looks
}

// errHangs tells that a victim does not end a round.
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
	// By the third round all libraries are loaded and all lazy symbols bound.
	for range 3 {
		if v.calm, _, err = v.round(time.Minute, nil); err != nil {
			v.kill()
			return nil, err
		}
	}
	return v, nil
}

func (v *victim) pid() int { return v.cmd.Process.Pid }

// tedium is after which time of a round slow is called: the probes are too many.
const tedium = 2 * time.Second

// round has the victim work, and returns its result and what it counted.
func (v *victim) round(patience time.Duration, slow func()) (result string, counts map[string]int64, err error) {
	if _, err := fmt.Fprintln(v.in); err != nil {
		return "", nil, v.death()
	}
	bored, hangs := time.NewTimer(tedium), time.NewTimer(patience)
	defer bored.Stop()
	defer hangs.Stop()
	for {
		select {
		case line, ok := <-v.lines:
			if !ok {
				return "", nil, v.death()
			}
			result, counts = parseRound(line)
			return result, counts, v.settle(hangs.C)
		case <-bored.C:
			if slow != nil {
				slow()
			}
		case <-hangs.C:
			return "", nil, errHangs
		}
	}
}

// settle waits until a victim that does not count itself has come to its next line:
// until then it calls functions of the round that it has told the result of.
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

// death tells how the victim has ended.
func (v *victim) death() error {
	err := v.cmd.Wait()
	if err == nil {
		return errors.New("it ended")
	}
	return fmt.Errorf("it ended: %w", err)
}

func (v *victim) kill() {
	v.cmd.Process.Kill()
	for range v.lines { // until its end
	}
	v.cmd.Wait() // it was killed
}
