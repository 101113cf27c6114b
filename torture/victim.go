//go:build linux && amd64

package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mirador/examples/child"
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
	// kept is the function whose calls are counted by a probe that outlives the gateway.
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
	*child.Child
	calm string // its result without probes
}

func start(k kind, command []string) (*victim, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), k.env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	running, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	v := &victim{kind: k, Child: running}
	// After three rounds all libraries are loaded and all lazy symbols are bound.
	for range 3 {
		if v.calm, _, err = v.round(time.Minute, nil); err != nil {
			v.Kill()
			return nil, err
		}
	}
	return v, nil
}

// slowAfter is the time after which a round calls slow, because there are too many probes.
const slowAfter = 2 * time.Second

// round makes the victim work, and returns its result and its counts.
func (v *victim) round(patience time.Duration, slow func()) (result string, counts map[string]int64, err error) {
	if err := v.Tell(""); err != nil {
		return "", nil, v.Death()
	}
	slowTimer, hangs := time.NewTimer(slowAfter), time.NewTimer(patience)
	defer slowTimer.Stop()
	defer hangs.Stop()
	for {
		select {
		case line, ok := <-v.Lines:
			if !ok {
				return "", nil, v.Death()
			}
			result, counts = parseRound(line)
			return result, counts, v.settle(hangs.C)
		case <-slowTimer.C:
			if slow != nil {
				slow()
			}
		case <-hangs.C:
			return "", nil, child.ErrHangs
		}
	}
}

// settle waits until a victim that does not count its calls reads its next line: until then it
// still calls functions after it has printed the result.
func (v *victim) settle(hangs <-chan time.Time) error {
	const pause = 200 * time.Microsecond
	for len(v.counted) > 0 {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", v.PID))
		if err != nil {
			return v.Death()
		}
		if bytes.HasPrefix(call, []byte("0 0x0 ")) { // read, of standard input
			return nil
		}
		select {
		case <-time.After(pause):
		case <-hangs:
			return child.ErrHangs
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
