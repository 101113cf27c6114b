//go:build linux && amd64

package kernel_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/linux/proc"
	"mirador/omis/linux/subject"
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
	object := subject.Compile(t, "target.o", append([]string{"-O2", "-c", "testdata/target.c"}, flags...)...)
	return subject.Compile(t, "target", append([]string{"-O2", object, "testdata/thrower.cc"}, flags...)...)
}

// target is a running target.
type target struct {
	*subject.Subject
	t         testing.TB
	path      string
	ID        omis.ProcID
	fun       map[string]uint64 // addresses of functions and variables
	size      map[string]int
	generated uint64 // address of code of no file
}

func start(t testing.TB, path string) *target {
	t.Helper()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // CRIU saves no process whose session began outside of its pid namespace
	g := &target{
		Subject: subject.Start(t, cmd), t: t, path: path,
		fun: make(map[string]uint64), size: make(map[string]int),
	}
	g.ready()
	var err error
	if g.ID, err = proc.Identify(g.PID); err != nil {
		t.Fatal(err)
	}
	g.locate()
	return g
}

// ready reads where the code is that the target generated.
func (g *target) ready() {
	g.t.Helper()
	if _, err := fmt.Sscanf(g.Line(), "ready 0x%x", &g.generated); err != nil {
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
		if kind := elf.ST_TYPE(s.Info); (kind == elf.STT_FUNC || kind == elf.STT_OBJECT) && s.Value != 0 {
			g.fun[s.Name], g.size[s.Name] = s.Value+modules[0].Bias, int(s.Size)
		}
	}
}

// do has the target do something, and returns what it answers.
func (g *target) do(format string, args ...any) string {
	g.t.Helper()
	g.Tell(format, args...)
	return g.Line()
}

// rest waits until the target waits for its next line.
func (g *target) rest() {
	g.t.Helper()
	until(g.t, "the target waits", func() bool {
		state, err := proc.ThreadState(g.ID.PID, g.ID.PID)
		return err == nil && state == "S"
	})
}

// until waits for something that must happen, for as long as a busy machine may take.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("never: %s", what)
		}
	}
}

// exits are the addresses of a function's returns.
func (g *target) exits(name string) []uint64 { return g.returns(g.fun[name], g.size[name]) }

func (g *target) returns(addr uint64, size int) (list []uint64) {
	for at, code := 0, g.code(addr, size); at < size; {
		if bytes.HasPrefix(code[at:], []byte("\xf3\x0f\x1e\xfa")) { // endbr64, which the decoder does not know
			at += 4
			continue
		}
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
