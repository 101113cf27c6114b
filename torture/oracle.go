//go:build linux && amd64

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var hitLine = regexp.MustCompile(`^(\d+)\s+breakpoint\b|breakpoint already hit (\d+) time`)

// countWithGDB lets gdb count how often a program that does not count its own calls calls functions
// in one round.
func countWithGDB(k kind, command []string, dir string) (counts map[string]int64, err error) {
	v, err := start(k, command)
	if err != nil {
		return nil, err
	}
	defer v.Kill()
	all, err := functionsOf(v.PID)
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	script.WriteString("set confirm off\nset pagination off\n")
	for i, name := range k.counted {
		f, ok := find(all, name, k.file)
		if !ok {
			return nil, fmt.Errorf("%s has no function %s", k.name, name)
		}
		fmt.Fprintf(&script, "break *%#x\nignore %d 100000000\n", f.addr, i+1)
	}
	script.WriteString("echo planted\\n\ncontinue\ninfo breakpoints\ndelete\ndetach\n")
	file := filepath.Join(dir, "gdb-"+k.name)
	if err := os.WriteFile(file, []byte(script.String()), 0o644); err != nil {
		return nil, err
	}
	gdb := exec.Command("gdb", "-nx", "-batch", "-p", strconv.Itoa(v.PID), "-x", file)
	out, err := gdb.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := gdb.Start(); err != nil {
		return nil, err
	}
	defer gdb.Process.Kill()
	lines := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "planted"); {
		if line, err = lines.ReadString('\n'); err != nil {
			return nil, fmt.Errorf("gdb: %w", err)
		}
	}
	if _, _, err := v.round(time.Minute, nil); err != nil {
		return nil, err
	}
	syscall.Kill(v.PID, syscall.SIGINT) // gdb does not pass this signal to the program
	said, err := io.ReadAll(lines)
	if err != nil {
		return nil, err
	}
	counts, number := make(map[string]int64), 0
	for _, line := range strings.Split(string(said), "\n") {
		m := hitLine.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case m == nil:
		case m[1] != "":
			number, _ = strconv.Atoi(m[1])
		case number > 0 && number <= len(k.counted):
			counts[k.counted[number-1]], _ = strconv.ParseInt(m[2], 10, 64)
		}
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("gdb has counted nothing:\n%s", said)
	}
	return counts, gdb.Wait()
}
