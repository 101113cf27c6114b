//go:build linux && amd64

package kernel_test

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/linux/proc"
)

func TestMain(m *testing.M) {
	if isMonitor() {
		return
	}
	goleak.VerifyTestMain(m)
}

// build compiles the target.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	object, out := filepath.Join(dir, "target.o"), filepath.Join(dir, "target")
	run(t, append([]string{"gcc", "-O1", "-g", "-pthread", "-c", "-o", object, "testdata/target.c"}, flags...)...)
	run(t, append([]string{"g++", "-O1", "-g", "-pthread", "-o", out, object, "testdata/thrower.cc"}, flags...)...)
	return out
}

func run(t testing.TB, command ...string) {
	t.Helper()
	if msg, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[0], err, msg)
	}
}

// target is a running target.
type target struct {
	t         testing.TB
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	path      string
	ID        omis.ProcID
	fun       map[string]uint64 // addresses of functions
	size      map[string]int
	generated uint64 // address of code of no file
}

func start(t testing.TB, path string) *target {
	t.Helper()
	g := &target{t: t, cmd: exec.Command(path), path: path, fun: make(map[string]uint64), size: make(map[string]int)}
	g.cmd.Stderr = os.Stderr
	g.in, _ = g.cmd.StdinPipe()
	out, _ := g.cmd.StdoutPipe()
	g.out = bufio.NewReader(out)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.cmd.Process.Kill()
		g.cmd.Wait()
	})
	g.ready()
	var err error
	if g.ID, err = proc.Identify(g.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	g.locate()
	return g
}

// ready reads where the code is that the target generated.
func (g *target) ready() {
	g.t.Helper()
	if _, err := fmt.Sscanf(g.line(), "ready 0x%x", &g.generated); err != nil {
		g.t.Fatal(err)
	}
}

// locate finds the functions of the target.
func (g *target) locate() {
	g.t.Helper()
	file, err := elf.Open(g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		g.t.Fatal(err)
	}
	modules, err := proc.Modules(g.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			g.fun[s.Name], g.size[s.Name] = s.Value+modules[0].Bias, int(s.Size)
		}
	}
}

func (g *target) line() string {
	g.t.Helper()
	s, err := g.out.ReadString('\n')
	if err != nil {
		g.t.Fatalf("the target said nothing more: %v (%v)", err, g.cmd.Wait())
	}
	return strings.TrimSpace(s)
}

func (g *target) begin(format string, args ...any) { fmt.Fprintf(g.in, format+"\n", args...) }

// do has the target do something, and returns what it answers.
func (g *target) do(format string, args ...any) string {
	g.t.Helper()
	g.begin(format, args...)
	return g.line()
}

// exits are the addresses of a function's returns.
func (g *target) exits(name string) []uint64 { return g.returns(g.fun[name], g.size[name]) }

func (g *target) returns(addr uint64, size int) (list []uint64) {
	for at, code := 0, g.code(addr, size); at < size; {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			g.t.Fatal(err)
		}
		if inst.Op == x86asm.RET {
			list = append(list, addr+uint64(at))
		}
		at += inst.Len
	}
	return list
}

// code reads the code of the target as it stands in its memory.
func (g *target) code(addr uint64, size int) []byte {
	g.t.Helper()
	b := make([]byte, size)
	if n, err := proc.ReadMemory(g.ID.PID, addr, b); err != nil || n != size {
		g.t.Fatal(n, err)
	}
	return b
}
