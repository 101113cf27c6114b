//go:build linux && amd64

package calls

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// made is a system call as this package decodes it.
type made struct {
	name    string
	started []omis.Value
	ended   []omis.Value // nil if the call did not return
}

// trace runs a program and decodes its calls.
func trace(t *testing.T, args ...string) (all []made) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	mem := func(buf []byte, addr uint64) (int, error) { return proc.ReadMemory(pid, addr, buf) }
	var status unix.WaitStatus
	wait := func() bool {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		return status.Stopped()
	}
	wait()
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	var current *Call
	signal := 0
	for {
		if err := unix.PtraceSyscall(pid, signal); err != nil {
			t.Fatal(err)
		}
		if !wait() {
			return all
		}
		signal = 0
		if status.StopSignal() != unix.SIGTRAP|0x80 {
			signal = int(status.StopSignal())
			continue
		}
		var r unix.PtraceRegs
		if err := unix.PtraceGetRegs(pid, &r); err != nil {
			t.Fatal(err)
		}
		a := Args{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
		if current == nil {
			current = ByNumber(r.Orig_rax)
			all = append(all, made{name: current.Name, started: current.Started(a, mem)})
		} else {
			all[len(all)-1].ended = current.Ended(a, r.Rax, mem)
			current = nil
		}
	}
}

var straceLine = regexp.MustCompile(`^(\w+)\((.*)\)\s+= (\?|0x[0-9a-f]+|-?\d+)(?: (E\w+))?`)

// said is a system call as strace prints it.
type said struct {
	name, result, errno string
	args                []string
}

func strace(t *testing.T, args ...string) (all []said) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "strace")
	cmd := exec.Command("strace", append([]string{"-xx", "-s", "10000", "-e", "signal=none", "-o", out}, args...)...)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace: %v\n%s", err, b)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		m := straceLine.FindStringSubmatch(l)
		if m == nil {
			if !strings.HasPrefix(l, "+++") {
				t.Errorf("strace says %s", l)
			}
			continue
		}
		all = append(all, said{name: m[1], args: split(m[2]), result: m[3], errno: m[4]})
	}
	return all[1:] // without the execve
}

// split cuts a list at the commas outside brackets and strings.
func split(list string) (parts []string) {
	depth, quoted, start := 0, false, 0
	for i, c := range list {
		switch {
		case c == '"':
			quoted = !quoted // with -xx, strings contain no quotes
		case quoted:
		case strings.ContainsRune("[{(", c):
			depth++
		case strings.ContainsRune("]})", c):
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(list[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(list[start:]))
}

func TestDecodesAsStraceDoes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "various")
	if b, err := exec.Command("gcc", "-O1", "-w", "-o", program, "testdata/various.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	// The paths have the same length, because it appears in lengths and results.
	ours, theirs := trace(t, program, t.TempDir()), strace(t, program, t.TempDir())
	if len(ours) != len(theirs) {
		t.Fatalf("%d calls, strace has %d", len(ours), len(theirs))
	}
	compared := 0
	for i, s := range theirs {
		m := ours[i]
		if m.name != strings.TrimSuffix(s.name, "_time64") {
			t.Fatalf("call %d is %s, strace says %s", i, m.name, s.name)
		}
		compared += compareCall(t, m, s)
	}
	if compared < 200 {
		t.Errorf("only %d values were compared", compared)
	}
}

// ofThisRun lists strings and numbers that differ between runs.
var ofThisRun = map[string]bool{
	"getcwd": true, "chdir": true, "fork": true, "clone": true, "wait4": true, "getrandom": true, "set_tid_address": true,
}

func compareCall(t *testing.T, m made, s said) (compared int) {
	t.Helper()
	if ofThisRun[m.name] {
		return 0
	}
	if m.ended == nil {
		if s.result != "?" {
			t.Errorf("%s did not return; strace says %s", m.name, s.result)
		}
		return 0
	}
	errno := ""
	if n := m.ended[1].N; n != 0 {
		errno = unix.ErrnoName(syscall.Errno(n))
	}
	if !strings.HasPrefix(s.result, "0x") && decimal(m.ended[0]) != plain(s.result) || errno != s.errno {
		t.Errorf("%s returns %s %s; strace says %s %s", m.name, decimal(m.ended[0]), errno, s.result, s.errno)
	}
	for i, arg := range s.args {
		if i >= len(m.started) {
			break // of a variadic call
		}
		compared += compareArg(t, m, i, arg)
	}
	return compared + 1
}

func compareArg(t *testing.T, m made, i int, arg string) int {
	t.Helper()
	started, ended := m.started[i], m.ended[i+2]
	switch {
	case strings.HasPrefix(arg, `"`):
		want := unquote(t, arg)
		if len(want) > 4096 {
			want = want[:4096]
		}
		if started.Str != want && ended.Str != want {
			t.Errorf("parameter %d of %s: %q, then %q; strace says %q", i+1, m.name, started.Str, ended.Str, want)
		}
		return 1
	case strings.HasPrefix(arg, `["`):
		var list []string
		for _, v := range started.List {
			list = append(list, v.Str)
		}
		var want []string
		for _, word := range split(strings.Trim(arg, "[]")) {
			want = append(want, unquote(t, word))
		}
		if !slices.Equal(list, want) {
			t.Errorf("parameter %d of %s: %q; strace says %q", i+1, m.name, list, want)
		}
		return 1
	case regexp.MustCompile(`^-?\d+$`).MatchString(arg):
		if decimal(started) != plain(arg) {
			t.Errorf("parameter %d of %s: %s; strace says %s", i+1, m.name, decimal(started), arg)
		}
		return 1
	case regexp.MustCompile(`^\[-?\d+(, -?\d+)*\]$`).MatchString(arg):
		var numbers []string
		for _, v := range ended.List {
			numbers = append(numbers, decimal(v))
		}
		if got := "[" + strings.Join(numbers, ", ") + "]"; ended.Kind == omis.KindList && got != arg {
			t.Errorf("parameter %d of %s: %s; strace says %s", i+1, m.name, got, arg)
		}
		return 1
	case arg == "NULL":
		if started.N != 0 || started.Kind != omis.KindInt {
			t.Errorf("parameter %d of %s: %+v; strace says NULL", i+1, m.name, started)
		}
		return 1
	}
	return 0
}

// plain converts an octal number of strace, such as a mode, to a decimal one.
func plain(number string) string {
	n, err := strconv.ParseInt(number, 0, 64)
	if err != nil {
		return number
	}
	return strconv.FormatInt(n, 10)
}

func decimal(v omis.Value) string {
	if v.Neg {
		return "-" + strconv.FormatUint(v.N, 10)
	}
	return strconv.FormatUint(v.N, 10)
}

// unquote decodes "\x61\x62".
func unquote(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Trim(s, `".`), `\x`, ""))
	if err != nil {
		t.Fatalf("strace prints %s: %v", s, err)
	}
	return string(b)
}
