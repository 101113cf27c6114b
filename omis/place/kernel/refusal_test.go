//go:build linux && amd64

package kernel_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// refused checks that no program can be placed at an address, and the reason.
func refused(t *testing.T, p *kernel.Placer, id omis.ProcID, addr uint64, why string) {
	t.Helper()
	err := judge(p, node.Watch{Event: node.EventReachedAddr, Proc: id, Addr: addr})
	var r *program.Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Why, why) {
		t.Errorf("at %#x: %v, want a refusal because %q", addr, err, why)
	}
}

// judge returns why no program can be placed at an event.
func judge(p *kernel.Placer, w node.Watch) error {
	_, errs := p.Judge([]program.Placing{{Watch: w}})
	return errs[0]
}

func TestRefusals(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	refused(t, p, g.ID, g.Generated, "generated at run time")
	refused(t, p, g.ID, mapped(t, g, "[vdso]"), "of no file")
	refused(t, p, g.ID, 0x1000, "has no code at 0x1000")
	refused(t, p, g.ID, mapped(t, g, "[heap]"), "has no code")
	if judge(p, node.Watch{Event: node.EventThreadCreated, Proc: g.ID}) == nil {
		t.Error("there are no uprobes at new threads")
	}
	w := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Func["work"], Threads: make([]int, 17)}
	if err := judge(p, w); err == nil || !strings.Contains(err.Error(), "16 threads") {
		t.Errorf("many threads: %v", err)
	}
	poke(t, g, g.Func["work"])
	debugged(t, g)
	refused(t, p, g.ID, g.Func["work"], "has been changed")
	former := omis.ProcID{PID: g.ID.PID, Start: g.ID.Start + 1}
	if err := judge(p, node.Watch{Event: node.EventReachedAddr, Proc: former, Addr: g.Func["nap"]}); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("another process: %v", err)
	}
}

func mapped(t *testing.T, g *rig.Target, name string) uint64 {
	t.Helper()
	maps, err := proc.Maps(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Path == name {
			return m.Start
		}
	}
	t.Fatalf("the target has no %s", name)
	return 0
}

// poke writes a breakpoint into the target, as a debugger does.
func poke(t *testing.T, g *rig.Target, addr uint64) {
	t.Helper()
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", g.ID.PID), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0xcc}, int64(addr)); err != nil {
		t.Fatal(err)
	}
}

// debugger makes the test binary trace a process, as a debugger does, until it is killed.
const debugger = "MIRADOR_TEST_DEBUGGER"

func isDebugger() bool {
	pid, err := strconv.Atoi(os.Getenv(debugger))
	if err != nil {
		return false
	}
	runtime.LockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		fmt.Println(err)
		return true
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return true
}

// debugged makes a debugger trace the target.
func debugged(t *testing.T, g *rig.Target) {
	t.Helper()
	subject.StartAgain(t, fmt.Sprintf("%s=%d", debugger, g.ID.PID))
}

// unprivileged makes the test binary a monitor without privileges, which prints its errors.
const unprivileged = "MIRADOR_TEST_UNPRIVILEGED"

func sayWhatIsMissing() {
	p := kernel.New(registrarCommand())
	defer p.Close()
	err := p.Check()
	if err == nil {
		err = p.CheckEvents()
	}
	if err == nil {
		err = measureOwn(p, os.Getenv(unprivileged))
	}
	fmt.Print(err)
}

// measureOwn starts a target as the same user, and counts in it.
func measureOwn(p *kernel.Placer, path string) error {
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	id, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		return err
	}
	store, err := p.NewStore(id, program.StoreSums)
	if err != nil {
		return err
	}
	placed, errs := p.Place([]program.Placing{
		{Watch: node.Watch{Event: node.EventReachedAddr, Proc: id, Addr: symbol(path, "child")}, Program: program.Program{{Do: program.OpAdd, Value: 1000, Store: store}}},
		{Watch: node.Watch{Event: node.EventSysCallStarted, Proc: id, Name: "getppid"}, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: store}}},
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, pl := range placed {
		pl.SetActive(true)
	}
	fmt.Fprintln(in, "call 100\nfork 3")
	lines.Scan()
	lines.Scan()
	rows, err := store.Rows()
	if err != nil || len(rows) != 1 || rows[0].Value != 1100 {
		return fmt.Errorf("counted %v, %v", rows, err)
	}
	return errors.Join(p.Remove(placed), store.Close())
}

// symbol returns the address of a function of a program that is loaded where it was linked.
func symbol(path, name string) uint64 {
	file, err := elf.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	symbols, _ := file.Symbols()
	for _, s := range symbols {
		if s.Name == name {
			return s.Value
		}
	}
	return 0
}

// Errors name missing capabilities. Two capabilities are enough to measure one's own processes.
func TestPrivileges(t *testing.T) {
	target := filepath.Join(subject.Shared(t), "caller")
	if err := os.Link(rig.Caller(t, "-no-pie"), target); err != nil {
		t.Fatal(err)
	}
	const lacks = "cannot run programs in the kernel: the monitor lacks "
	for _, try := range []struct {
		have []uintptr
		want string
	}{
		{nil, lacks + "CAP_BPF and CAP_PERFMON"},
		{[]uintptr{unix.CAP_BPF}, lacks + "CAP_PERFMON"},
		{[]uintptr{unix.CAP_PERFMON}, lacks + "CAP_BPF"},
		{[]uintptr{unix.CAP_BPF, unix.CAP_PERFMON}, "<nil>"},
	} {
		if out := subject.RunAgain(t, unprivileged+"="+target, subject.Nobody(try.have...)); out != try.want {
			t.Errorf("with %v: %q; want %q", try.have, out, try.want)
		}
	}
}

// After uprobes are removed, the code is the original.
func TestCodeIsPutRight(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	before := g.Code(g.Func["work"], g.Size["work"])
	store, err := p.NewStore(g.ID, program.StoreSums)
	if err != nil {
		t.Fatal(err)
	}
	addrs := append(g.Exits("work"), g.Func["work"], g.Func["work"])
	all := placeAt(t, p, g.ID, program.Program{{Do: program.OpAdd, Value: 1, Store: store}}, addrs...)
	for _, placed := range all {
		placed.SetActive(true)
	}
	if bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("there is no uprobe in the code")
	}
	g.Do("call 10")
	if err := p.Remove(all); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("the code is not what it was")
	}
	g.Do("call 10")
	if list := rows(t, store); len(list) != 1 || list[0].Value != 10*int64(len(all)) {
		t.Errorf("rows %+v", list)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// A reader of the target's memory does not see uprobes.
func TestUprobesAreHidden(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	before := g.Code(g.Func["work"], g.Size["work"])
	r := newRig(t, kernel.Name, g)
	r.Region("work", "[]")
	r.Enable()
	if bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"])) {
		t.Error("there is no uprobe in the code")
	}
	reply := r.Ask(": proc_read_memory_bin([],%#x,%d,%[2]d,1)", g.Func["work"], len(before))
	if got := reply[1][0].Values[0].Str; got != string(before) {
		t.Errorf("% x, want % x", got, before)
	}
}
