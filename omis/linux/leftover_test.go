//go:build linux && amd64

package linux

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestLeftovers checks that the next monitor removes the breakpoints of a monitor that was killed together with
// its warden as soon as it attaches, without tracing.
func TestLeftovers(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	g := start(t, hammer, "4", "2000")
	leaveMonitor(t, g, "plant nowarden")
	if memory, file := text(t, g); bytes.Equal(memory, file) {
		t.Fatal("the killed monitor left nothing")
	}
	n := openNode(t)
	if _, err := n.Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	checkText(t, g)
	hits, cancel := watchWork(t, n, g)
	if _, err := n.Identify(g.ID.PID); err != nil { // must not remove this monitor's own breakpoints
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Line(); got != want || hits.Load() != 8000 {
		t.Errorf("%s with %d hits, want %s", got, hits.Load(), want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}

// TestOthersTraps checks that a monitor does not change an INT3 of another tool, such as a uprobe, even at the
// address of its own former breakpoint.
func TestOthersTraps(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	g := start(t, hammer, "4", "2000")
	n := openNodeWith(t, Config{Ptrace: true}) // breakpoints only
	elsewhere := functionOf(t, hammer, "main") - functionOf(t, hammer, "work") + g.Addr
	original := pokeText(t, g, g.Addr, nil)
	for _, addr := range []uint64{g.Addr, elsewhere} {
		cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: addr}, func(*node.Hit) {})
		if err != nil {
			t.Fatal(err)
		}
		if addr == elsewhere {
			checkTrap(t, g, "setting a breakpoint elsewhere")
		}
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		pokeText(t, g, g.Addr, []byte{int3})
	}
	if _, err := openNode(t).Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	checkTrap(t, g, "looking for leftovers")
	pokeText(t, g, g.Addr, []byte{original})
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	checkUntouched(t, g)
}

// checkTrap checks that another tool's INT3 in the target's function is unchanged after an action.
func checkTrap(t *testing.T, g *target, action string) {
	t.Helper()
	if now := pokeText(t, g, g.Addr, nil); now != int3 {
		t.Errorf("%s changed another tool's INT3 to %#x", action, now)
	}
}

// TestOthersTrapsLater checks that an INT3 that another tool sets at the address of a killed monitor's former
// breakpoint is unchanged by a warden that acts late, by the next monitor that attaches, and by breakpoints
// elsewhere.
func TestOthersTrapsLater(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	elsewhere := functionOf(t, hammer, "main") - functionOf(t, hammer, "work")
	for mode, killed := range map[string]func(*testing.T, *target) (late func()){
		"warden":      killedWithWarden,
		"no warden":   killedWithoutWarden,
		"late warden": killedWithLateWarden,
	} {
		t.Run(mode, func(t *testing.T) {
			g := start(t, hammer, "4", "2000")
			late := killed(t, g)
			checkText(t, g)
			original := pokeText(t, g, g.Addr, nil)
			pokeText(t, g, g.Addr, []byte{int3})
			late()
			checkTrap(t, g, "the warden")
			n := openNodeWith(t, Config{Ptrace: true})
			if _, err := n.Identify(g.ID.PID); err != nil {
				t.Fatal(err)
			}
			cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr + elsewhere}, func(*node.Hit) {})
			if err != nil {
				t.Fatal(err)
			}
			if err := cancel(); err != nil {
				t.Fatal(err)
			}
			checkTrap(t, g, "the next monitor")
			pokeText(t, g, g.Addr, []byte{original})
			g.Begin()
			if got := g.Line(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			checkUntouched(t, g)
		})
	}
}

// Each of these functions kills a monitor. With killedWithWarden its warden removes the breakpoint, with the
// others the next monitor does. With killedWithLateWarden the warden acts when the returned function is called.

func killedWithWarden(t *testing.T, g *target) (late func()) {
	leaveMonitor(t, g, "plant ptrace")
	awaitRestored(t, g)
	eventually(t, "the warden records that no breakpoint is left", func() bool { return !leftIn(t, g).stands() })
	return func() {}
}

func killedWithoutWarden(t *testing.T, g *target) (late func()) {
	leaveMonitor(t, g, "plant nowarden ptrace")
	if _, err := openNode(t).Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	return func() {}
}

func killedWithLateWarden(t *testing.T, g *target) (late func()) {
	monitor := startMonitor(t, g, "plant ptrace")
	monitor.Line()
	warden, err := proc.Identify(awaitWarden(t, monitor.PID, 0))
	if err != nil {
		t.Fatal(err)
	}
	goOn := func() { unix.Kill(warden.PID, unix.SIGCONT) }
	t.Cleanup(goOn)
	unix.Kill(warden.PID, unix.SIGSTOP)
	monitor.Kill()
	if _, err := openNode(t).Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	return func() {
		goOn()
		eventually(t, "the warden ends", func() bool { return proc.Alive(warden) != nil })
	}
}

// leftIn returns what killed monitors have left in a target.
func leftIn(t *testing.T, g *target) leftover {
	t.Helper()
	memory, err := openMemory(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	return left(g.ID.PID, memory)
}

func functionOf(t *testing.T, path, name string) uint64 {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatal("there is no ", name)
	return 0
}

// pokeText writes to the code of a target, and returns the first byte at the address afterwards.
func pokeText(t *testing.T, g *target, addr uint64, code []byte) byte {
	t.Helper()
	memory, err := os.OpenFile(memoryPath(g.ID.PID), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if _, err := memory.WriteAt(code, int64(addr)); err != nil {
		t.Fatal(err)
	}
	now := make([]byte, 1)
	if _, err := memory.ReadAt(now, int64(addr)); err != nil {
		t.Fatal(err)
	}
	return now[0]
}
