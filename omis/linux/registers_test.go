//go:build linux && amd64

package linux

import (
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
)

// gdbValues evaluates expressions in a thread by gdb.
func gdbValues(t *testing.T, pid, tid int, expressions []string) map[string]string {
	t.Helper()
	script := fmt.Sprintf("python\nfor t in gdb.selected_inferior().threads():\n    if t.ptid[1] == %d:\n        t.switch()\n", tid)
	for _, e := range expressions {
		script += fmt.Sprintf("print('VALUE %s ' + gdb.parse_and_eval('%s').format_string(format='%s'))\n", e, e, gdbFormat(e))
	}
	out, err := exec.Command("gdb", "-q", "-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", script).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	values := make(map[string]string)
	for _, m := range regexp.MustCompile(`VALUE (\S+) (\S+)`).FindAllSubmatch(out, -1) {
		values[string(m[1])] = string(m[2])
	}
	return values
}

func gdbFormat(expression string) string {
	if strings.Contains(expression, "xmm") || strings.HasPrefix(expression, "$st") {
		return "f"
	}
	return "x"
}

var intNames = strings.Fields("$rax $rdx $rcx $rbx $rsi $rdi $rbp $rsp $r8 $r9 $r10 $r11 $r12 $r13 $r14 $r15 $rip $eflags $fs_base $gs_base")

func startRegisters(t *testing.T) (n *Node, g *target, spin, wait int, data uint64) {
	t.Helper()
	n = openNode(t)
	g = start(t, build(t, "registers.c"))
	if _, err := fmt.Sscanf(g.Line(), "%v", &data); err != nil {
		t.Fatal(err)
	}
	tids, err := n.Threads(g.ID)
	if err != nil || len(tids) != 3 {
		t.Fatal(tids, err)
	}
	awaitRegister(t, n, g, tids[1], 15, ^uint64(0)) // the last one that spin sets
	awaitState(t, tids[2], "S")
	return n, g, tids[1], tids[2], data
}

func TestRegistersAgreeWithGDB(t *testing.T) {
	n, g, spin, wait, _ := startRegisters(t)
	for _, tid := range []int{spin, wait} {
		got, err := n.ReadIntRegs(g.ID, tid, 0, intRegs)
		if err != nil {
			t.Fatal(err)
		}
		want := gdbValues(t, g.ID.PID, tid, intNames)
		for i, name := range intNames {
			w, _ := strconv.ParseUint(want[name], 0, 64)
			if tid == spin && (i == pcReg || name == "$eflags") {
				continue // the thread executes a loop of two instructions
			}
			if got[i] != w {
				t.Errorf("thread %d: %s is %#x, in gdb %#x", tid, name, got[i], w)
			}
		}
	}
	names := []string{"$xmm0.v2_double[0]", "$xmm1.v2_double[0]", "$xmm15.v2_double[0]", "$st0", "$st1"}
	numbers := []int{0, 1, 15, 16, 17}
	want := gdbValues(t, g.ID.PID, spin, names)
	got, err := n.ReadFPRegs(g.ID, spin, 0, fpRegs)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		w, err := strconv.ParseFloat(want[name], 64)
		if err != nil || got[numbers[i]] != w {
			t.Errorf("%s is %v, in gdb %s", name, got[numbers[i]], want[name])
		}
	}
	checkUntouched(t, g)
}

func awaitRegister(t *testing.T, n *Node, g *target, tid, number int, value uint64) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); time.Now().Before(deadline); {
		got, err := n.ReadIntRegs(g.ID, tid, number, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] == value {
			return
		}
	}
	t.Fatalf("register %d of thread %d does not become %#x", number, tid, value)
}

func TestWriteRegisters(t *testing.T) {
	n, g, spin, wait, _ := startRegisters(t)
	values := []float64{-1.5, math.Inf(1), 1e-300, 0.1}
	if err := n.WriteFPRegs(g.ID, spin, 14, values); err != nil {
		t.Fatal(err)
	}
	if got, err := n.ReadFPRegs(g.ID, spin, 14, 4); err != nil || fmt.Sprint(got) != fmt.Sprint(values) {
		t.Error(got, err)
	}
	before, _ := n.ReadIntRegs(g.ID, spin, 0, intRegs)
	err := n.WriteIntRegs(g.ID, spin, pcReg, []uint64{before[pcReg], before[17], 1 << 63})
	wantError(t, err, omis.ParameterError, "cannot have these values")
	if after, _ := n.ReadIntRegs(g.ID, spin, 0, intRegs); after[18] != before[18] {
		t.Error("a refused write has changed a register")
	}
	_, err = n.ReadIntRegs(g.ID, spin, 19, 2)
	wantError(t, err, omis.ParameterError, "numbered from 0 to 19")
	_, err = n.ReadIntRegs(g.ID, 1, 0, 1)
	wantError(t, err, omis.UnknownObject, "no thread 1")

	// Call the function in the middle of the loop, and then in a system call.
	for range 3 {
		if err := n.Call(g.ID, spin, g.Addr); err != nil {
			t.Fatal(err)
		}
		awaitRegister(t, n, g, spin, 7, before[7])
	}
	if err := n.Stop(g.ID, []int{wait}); err != nil {
		t.Fatal(err)
	}
	old, _ := n.ReadIntRegs(g.ID, wait, 0, intRegs)
	if err := n.Call(g.ID, wait, g.Addr); err != nil {
		t.Fatal(err)
	}
	now, _ := n.ReadIntRegs(g.ID, wait, 0, intRegs)
	if now[7] >= old[7] || now[7]%16 != 8 || now[pcReg] != g.Addr {
		t.Errorf("after the call rsp %#x rip %#x; before rsp %#x rip %#x", now[7], now[pcReg], old[7], old[pcReg])
	}
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the thread is back in its system call", func() bool {
		now, err := n.ReadIntRegs(g.ID, wait, 0, intRegs)
		return err == nil && now[7] == old[7] && now[pcReg] == old[pcReg]
	})
	if err := n.WriteIntRegs(g.ID, spin, 15, []uint64{0x7777}); err != nil {
		t.Fatal(err)
	}
	if got := g.Line(); got != "calls 4" {
		t.Error(got)
	}
	checkUntouched(t, g)
}

// TestGoto makes a stopped thread continue at another address.
func TestGoto(t *testing.T) {
	n, g, spin, _, _ := startRegisters(t)
	if err := n.Stop(g.ID, []int{spin}); err != nil {
		t.Fatal(err)
	}
	sp, _ := n.ReadIntRegs(g.ID, spin, 7, 1)
	pc, _ := n.ReadIntRegs(g.ID, spin, pcReg, 1)
	if err := n.WriteMemory(g.ID, sp[0]-8, word(pc[0])); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteIntRegs(g.ID, spin, 7, []uint64{sp[0] - 8}); err != nil {
		t.Fatal(err)
	}
	if err := n.Goto(g.ID, spin, g.Addr); err != nil {
		t.Fatal(err)
	}
	hits, _ := watchWork(t, n, g)
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	awaitRegister(t, n, g, spin, 7, sp[0])
	if hits.Load() != 1 {
		t.Errorf("%d hits", hits.Load())
	}
}
