//go:build linux && amd64

package inline_test

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
	"mirador/omis/program"
)

// observed is a running program with its functions, on a real node.
type observed struct {
	*subject.Subject
	t    testing.TB
	ID   omis.ProcID
	node *linux.Node
	fun  map[string]uint64
	size map[string]int
}

// observe starts a program that prints a line when it is ready.
func observe(t testing.TB, path string, args ...string) *observed {
	t.Helper()
	g := &observed{
		Subject: subject.Start(t, exec.Command(path, args...)), t: t, node: newNode(t),
		fun: make(map[string]uint64), size: make(map[string]int),
	}
	g.Line()
	var err error
	if g.ID, err = proc.Identify(g.PID); err != nil {
		t.Fatal(err)
	}
	modules, err := proc.Modules(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		g.locate(m)
	}
	return g
}

func newNode(t testing.TB) *linux.Node {
	t.Helper()
	n, err := linux.Open(linux.Config{Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

// locate finds the functions of a module.
func (g *observed) locate(m node.Module) {
	g.t.Helper()
	file, err := elf.Open(m.Path)
	if err != nil {
		return // the kernel's own
	}
	defer file.Close()
	symbols, _ := file.Symbols() // the symbols of a library may have been removed
	dynamic, _ := file.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			g.fun[s.Name], g.size[s.Name] = s.Value+m.Bias, int(s.Size)
		}
	}
}

func (g *observed) code(addr uint64, size int) []byte {
	g.t.Helper()
	b := make([]byte, size)
	if n, err := proc.ReadMemory(g.PID, addr, b); err != nil || n != size {
		g.t.Fatal(n, err)
	}
	return b
}

// many is how many functions are measured at once.
const many = 10_000

// buildMany compiles a program with many functions, and the command "all FROM TO", which calls some of
// them.
func buildMany(t testing.TB) string {
	t.Helper()
	var code strings.Builder
	code.WriteString(".data\nmany_calls: .quad 0\n.text\n")
	for i := range many {
		fmt.Fprintf(&code, ".p2align 4\n.type many_%d, @function\nmany_%[1]d: push %%rbp\nincq many_calls(%%rip)\npop %%rbp\nret\n.size many_%[1]d, .-many_%[1]d\n", i)
	}
	code.WriteString(".data\n.globl many_all\nmany_all:\n")
	for i := range many {
		fmt.Fprintf(&code, ".quad many_%d\n", i)
	}
	code.WriteString(".section .note.GNU-stack,\"\",@progbits\n")
	path := filepath.Join(t.TempDir(), "many.s")
	if err := os.WriteFile(path, []byte(code.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return subject.Compile(t, "many", "-O1", "-no-pie", "../kernel/testdata/many.c", path)
}

// Ten thousand functions are measured, read and released, each by itself.
func TestManyFunctions(t *testing.T) {
	g := observe(t, buildMany(t))
	p := newPlacer(t, g.node)
	first, last := g.fun["many_0"], g.fun[fmt.Sprint("many_", many-1)]
	before := g.code(first, int(last-first))
	list := make([]program.Placing, many)
	stores := make([]program.Store, many)
	for i := range list {
		stores[i] = newStore(t, p, g.ID, program.StoreSums)
		list[i].Watch = node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.fun[fmt.Sprint("many_", i)]}
		list[i].Program = program.Program{{Do: program.OpAdd, Value: 1, Store: stores[i]}}
	}
	began := time.Now()
	placed, errs := p.Place(list)
	t.Log("placed in", time.Since(began))
	refused := make(map[int]bool)
	var stands []program.Placed
	for i, err := range errs {
		if err != nil {
			refused[i] = true // bytes that look like a branch into its middle
			continue
		}
		placed[i].SetActive(true)
		stands = append(stands, placed[i])
	}
	if len(refused) > many/100 {
		t.Fatalf("%d of them were refused: %v", len(refused), errs)
	}
	for _, to := range []int{many, many / 2} {
		g.Tell("all 0 %d", to)
		g.Line()
	}
	began = time.Now()
	for i, s := range stores {
		want := int64(1)
		if i < many/2 {
			want = 2
		}
		if refused[i] {
			continue
		}
		if r := rows(t, s); len(r) != 1 || r[0].Value != want {
			t.Fatalf("function %d: rows %+v, want %d", i, r, want)
		}
	}
	t.Log("read in", time.Since(began))
	began = time.Now()
	if err := p.Remove(stands); err != nil {
		t.Fatal(err)
	}
	t.Log("removed in", time.Since(began))
	if after := g.code(first, len(before)); string(after) != string(before) {
		t.Error("the code is not what it was")
	}
}

// BenchmarkRows measures reading a counter.
func BenchmarkRows(b *testing.B) {
	h := newHost(b, 64*gigabyte)
	p := newPlacer(b, h)
	s := newStore(b, p, h.ID, program.StoreSums)
	place(b, p, h.watch(1, atBegin), program.Op{Do: program.OpAdd, Value: 1, Store: s})
	h.do("call", 1, 10)
	for b.Loop() {
		rows(b, s)
	}
}
