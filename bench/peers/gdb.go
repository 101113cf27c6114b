//go:build linux && amd64

package peers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"mirador/bench/subject"
)

// prelude begins every script of gdb.
const prelude = "set pagination off\nset confirm off\nset debuginfod enabled off\n"

// Scripts with breakpoints at which gdb's own commands count, or a class of its Python
// interface takes the time. gdb prints the mean when the target has ended.
const (
	countingScript = `set $hits = 0
break *%#[1]x
commands
silent
set $hits = $hits + 1
continue
end
`
	timingScript = `python
import time
class Entry(gdb.Breakpoint):
    begun = calls = total = 0
    def stop(self):
        Entry.begun = time.perf_counter_ns()
        return False
class Return(gdb.Breakpoint):
    def stop(self):
        now = time.perf_counter_ns()
        if Entry.begun:
            Entry.calls += 1
            Entry.total += now - Entry.begun
            Entry.begun = 0
        return False
Entry("*%#[1]x")
Return("*%#[2]x")
end
`
	lastWords = `shell echo ready
continue
python print("mean", Entry.total / max(1, Entry.calls)) if "Entry" in globals() else None
`
)

func (p *Peers) breakpoint(task subject.Task) (*subject.Standing, error) {
	path, err := find("gdb")
	if err != nil {
		return nil, err
	}
	t, err := p.Program.StartCopy()
	if err != nil {
		return nil, err
	}
	script := fmt.Sprintf(countingScript, t.Entry(task.Function))
	if task.Timed {
		script = fmt.Sprintf(timingScript, t.Entry(task.Function), t.Return(task.Function))
	}
	script = prelude + script + lastWords
	b, err := p.gdb(path, script, "-p", fmt.Sprint(t.PID()))
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	return ending(t, b, task, meanOfPython), nil
}

// gdb runs a script until it is ready.
func (p *Peers) gdb(path, script string, args ...string) (*tool, error) {
	file, err := os.CreateTemp(p.Dir, "gdb-")
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(script)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	b, err := launch(exec.Command(path, append([]string{"-nx", "-q", "-batch", "-x", file.Name()}, args...)...))
	if err != nil {
		return nil, err
	}
	return b, b.await("ready")
}

func meanOfPython(lines []string) (float64, error) {
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "mean "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("gdb printed no mean, but %q", lines)
}

// agent is the library that gdbserver's fast tracepoints need in their target.
const agent = "/usr/lib/libinproctrace.so"

// fastTracepoints returns why a fast tracepoint cannot do a task: among others, it
// requires an instruction of five bytes.
func fastTracepoints(t subject.Task) string {
	switch {
	case t.Timed:
		return "it collects data, but takes no time"
	case t.Function != "moved":
		return "it requires an instruction of five bytes at the function's beginning"
	}
	return ""
}

func (p *Peers) fastTracepoint(task subject.Task) (*subject.Standing, error) {
	path, err := find("gdb")
	if err != nil {
		return nil, err
	}
	server, err := find("gdbserver")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(agent); err != nil {
		return nil, &subject.Missing{Why: "gdbserver's library for tracepoints is not there: " + err.Error()}
	}
	program, err := p.Program.Copy()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	t, err := program.Launch(exec.Command(server, "--once", "--wrapper", "env", "LD_PRELOAD="+agent, "--", address, program.Path))
	if err != nil {
		return nil, err
	}
	script := prelude + fmt.Sprintf(`set sysroot /
set tcp auto-retry on
target remote %[1]s
break main
continue
delete
tvariable $hits = 0
set circular-trace-buffer on
ftrace *%#[2]x
actions
teval $hits = $hits + 1
end
tstart
shell echo ready
continue
`, address, program.Entry(task.Function))
	b, err := p.gdb(path, script, program.Path)
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	if err := t.Ready(); err != nil {
		b.kill()
		return nil, err
	}
	return ending(t, b, task, nil), nil
}

// freeAddress returns the address of a port that is unused now and probably a moment
// later.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
