//go:build linux && amd64

package rig

import (
	"bytes"
	"debug/elf"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
)

//go:embed testdata
var sources embed.FS

// source copies the sources of the targets to a temporary folder and returns its path.
func source(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, sources); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "testdata")
}

// Scenes compiles a target whose functions are called a known number of times: by threads,
// recursively, and such that longjmp or an exception leaves them.
func Scenes(t testing.TB, flags ...string) string {
	t.Helper()
	return subject.Once(t, "scenes "+strings.Join(flags, " "), func() string { return scenes(t, flags) })
}

func scenes(t testing.TB, flags []string) string {
	t.Helper()
	dir := source(t)
	object := subject.Compile(t, "target.o", append([]string{"-c", filepath.Join(dir, "target.c")}, flags...)...)
	return subject.Compile(t, "target", append([]string{object, filepath.Join(dir, "thrower.cc")}, flags...)...)
}

// Caller compiles a target that makes a known number of system calls.
func Caller(t testing.TB, flags ...string) string {
	t.Helper()
	return subject.Once(t, "caller "+strings.Join(flags, " "), func() string {
		return subject.Compile(t, "caller", append([]string{"-O1", filepath.Join(source(t), "caller.c")}, flags...)...)
	})
}

// Target is a running target.
type Target struct {
	*subject.Subject
	Path      string
	ID        omis.ProcID
	Func      map[string]uint64 // addresses of functions and variables
	Size      map[string]int
	Generated uint64 // address of code that the target generated

	exits map[string][]uint64
	t     testing.TB
}

// Start starts a target.
func Start(t testing.TB, path string) *Target {
	t.Helper()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // CRIU does not save a process whose session leader is outside its pid namespace
	g := &Target{
		Subject: subject.Start(t, cmd), t: t, Path: path,
		Func: make(map[string]uint64), Size: make(map[string]int), exits: make(map[string][]uint64),
	}
	g.Ready()
	var err error
	if g.ID, err = proc.Identify(g.PID); err != nil {
		t.Fatal(err)
	}
	g.locate()
	return g
}

// Ready waits until the target has generated code, and reads the code's address.
func (g *Target) Ready() {
	g.t.Helper()
	if _, err := fmt.Sscanf(g.Line(), "ready 0x%x", &g.Generated); err != nil {
		g.t.Fatal(err)
	}
}

// locate finds the functions and variables of the target.
func (g *Target) locate() {
	g.t.Helper()
	file, err := elf.Open(g.Path)
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
			g.Func[s.Name], g.Size[s.Name] = s.Value+modules[0].Bias, int(s.Size)
		}
	}
}

// Do sends the target a command and returns its answer.
func (g *Target) Do(format string, args ...any) string {
	g.t.Helper()
	g.Tell(format, args...)
	return g.Line()
}

// Rest waits until the target waits for its next command.
func (g *Target) Rest() {
	g.t.Helper()
	Until(g.t, "the target waits", func() bool {
		state, err := proc.ThreadState(g.ID.PID, g.ID.PID)
		return err == nil && state == "S"
	})
}

// Until waits until holds returns true; the limit leaves time for a busy machine.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Exits returns the addresses of a function's return instructions. It reads the code only once,
// because tools may change it later.
func (g *Target) Exits(name string) []uint64 {
	g.t.Helper()
	if g.exits[name] == nil {
		g.exits[name] = g.Returns(g.Func[name], g.Size[name])
	}
	return g.exits[name]
}

// Returns returns the addresses of the return instructions in some code.
func (g *Target) Returns(addr uint64, size int) (list []uint64) {
	for at, code := 0, g.Code(addr, size); at < size; {
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

// Code reads code from the target's memory.
func (g *Target) Code(addr uint64, size int) []byte {
	g.t.Helper()
	b := make([]byte, size)
	if n, err := proc.ReadMemory(g.ID.PID, addr, b); err != nil || n != size {
		g.t.Fatal(n, err)
	}
	return b
}
