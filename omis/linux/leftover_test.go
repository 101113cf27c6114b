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

// TestLeftovers: what a monitor left that was killed together with its warden is
// taken out as soon as another attaches; it need not trace for that.
func TestLeftovers(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	g := start(t, hammer, "4", "2000")
	leaveMonitor(t, g, "plant nowarden")
	if memory, file := text(t, g); bytes.Equal(memory, file) {
		t.Fatal("nothing was left")
	}
	n := openNode(t)
	if _, err := n.Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	checkText(t, g)
	hits, cancel := watchWork(t, n, g)
	if _, err := n.Identify(g.ID.PID); err != nil { // those that stand now are ours
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

// TestOthersTraps: an INT3 that somebody else has set is left alone, a uprobe's for
// instance, also where one of ours stood before.
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
			checkTrap(t, g, "whoever set a breakpoint elsewhere")
		}
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		pokeText(t, g, g.Addr, []byte{int3})
	}
	if _, err := openNode(t).Identify(g.ID.PID); err != nil { // who looks for leftovers
		t.Fatal(err)
	}
	checkTrap(t, g, "who looked for leftovers")
	pokeText(t, g, g.Addr, []byte{original})
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	checkUntouched(t, g)
}

// checkTrap: somebody else's INT3 stands where a target does its work; who may have taken
// it out.
func checkTrap(t *testing.T, g *target, who string) {
	t.Helper()
	if now := pokeText(t, g, g.Addr, nil); now != int3 {
		t.Errorf("%s has made %#x of somebody else's trap", who, now)
	}
}

// TestOthersTrapsLater: where a killed monitor's breakpoint stood, an INT3 that somebody
// else sets afterwards is left alone, by a warden that comes late, by whoever attaches,
// and by whoever sets breakpoints elsewhere.
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

// killedWithWarden has a monitor's breakpoint taken out by its warden, killedWithoutWarden
// by the next monitor, as killedWithLateWarden does, whose warden comes afterwards: when
// the function that it returns is called.

func killedWithWarden(t *testing.T, g *target) (late func()) {
	leaveMonitor(t, g, "plant ptrace")
	awaitRestored(t, g)
	eventually(t, "the warden says that nothing stands", func() bool { return !leftIn(t, g).stands() })
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

// leftIn is what a target has of killed monitors.
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

// pokeText writes to the code of a target, and returns the byte that is there then.
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
