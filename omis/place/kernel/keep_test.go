//go:build linux && amd64

package kernel_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
	"mirador/probes/journal"
)

// TestTakeOver checks that programs continue to count after the monitor was killed, and that the next
// monitor adopts them.
func TestTakeOver(t *testing.T) {
	for name, clock := range map[string]program.Clock{"elapsed time": program.ClockOrdered, "CPU time": program.ClockCPU, "a counter": program.ClockCell, "page faults": program.ClockMinorFaults} {
		t.Run(name, func(t *testing.T) { takeOver(t, clock) })
	}
}

func takeOver(t *testing.T, clock program.Clock) {
	g, a := startScenes(t)
	a.Clock = clock
	before := codeOfWork(g)
	k := newKeeper(t, a)
	k.want("recall", "false false")
	k.want("settle", "0 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("together 3 100")
	k.want("rows", "300 300 0")
	for i := range 3 {
		k.kill()
		g.Do("call 50")
		k = successor(t, a)
		k.want("rows", fmt.Sprint(350+i*60, 350+i*60, 0))
		k.adopt()
		g.Do("call 10")
		k.want("rows", fmt.Sprint(360+i*60, 360+i*60, 0))
	}
	k.want("reset", "reset")
	g.Do("call 5")
	k.kill()
	g.Do("call 5")
	k = placedKeeper(t, a)
	k.want("rows", "10 10 0")
	k.close()
	checkCode(t, g, before)
	if f, err := persist.Of(a.Data); err != nil || len(f.Names()) > 0 {
		t.Errorf("%q are left, %v", f.Names(), err)
	}
}

// TestQuickSuccessors checks that the memory in the kernel does not grow with every killed monitor.
func TestQuickSuccessors(t *testing.T) {
	g, a := startScenes(t)
	k := newKeeper(t, a)
	k.want("settle", "0 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	chunks := func() (n int) {
		f, err := persist.Of(a.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range f.Names() {
			if strings.HasPrefix(name, "chunk-") {
				n++
			}
		}
		return n
	}
	before := chunks()
	for i := range 6 {
		g.Do("onebyone 100 1")
		k.kill()
		k = successor(t, a)
		k.want("rows", fmt.Sprint((i+1)*100, (i+1)*100, 0))
		k.adopt()
	}
	if now := chunks(); before == 0 || now > before {
		t.Errorf("%d chunks of memory at first, %d at the end", before, now)
	}
	k.close()
}

// TestTakeOverSamples checks that the next monitor has all counts if only some intervals are timed.
func TestTakeOverSamples(t *testing.T) {
	g, a := startScenes(t)
	a.OneIn = 10
	k := placedKeeper(t, a)
	g.Do("together 3 100")
	k.want("rows", "300 30 0 270")
	for i := range 3 {
		g.Do("call 5")
		k.kill()
		g.Do("call 10")
		g.Do("onebyone 20 20")
		k = successor(t, a)
		k.adopt()
		g.Do("call 5")
		turns := 30 + (i+1)*(2+2*20)
		k.want("rows", fmt.Sprint(10*turns, turns, 0, 9*turns))
	}
	k.close()
}

// TestTakeOverHistograms checks that the next monitor has every interval in its bucket, also the intervals
// of threads whose rows were freed.
func TestTakeOverHistograms(t *testing.T) {
	g, a := startScenes(t)
	a.Spread = true
	k := placedKeeper(t, a)
	n := 0
	for range 3 {
		g.Do("onebyone 400 2") // more than half of the rows that are ready
		g.Do("call 5")
		k.want("rows", fmt.Sprint(n+805, n+805, 0, n+805))
		k.kill()
		g.Do("onebyone 20 20")
		n += 805 + 400
		k = successor(t, a)
		k.want("rows", fmt.Sprint(n, n, 0, n))
		k.adopt()
	}
	k.want("reset", "reset")
	g.Do("call 7")
	k.want("rows", "7 7 0 7")
	k.close()
}

// TestOtherProgramsAreNotAdopted checks that a monitor does not adopt programs and timers that differ from
// the ones it needs.
func TestOtherProgramsAreNotAdopted(t *testing.T) {
	g, work := startScenes(t)
	exits := len(work.Exits)
	for _, c := range []struct {
		name          string
		before, after func(*assignment)
		orphans       int
		rows          string
	}{
		{"another clock",
			func(a *assignment) { a.Clock = program.ClockCPU },
			func(a *assignment) { a.Clock = program.ClockOrdered },
			1 + exits, "10 10 0"},
		{"another ratio, for which the end of an interval is the same",
			func(a *assignment) { a.OneIn = 10 },
			func(a *assignment) { a.OneIn = 20 },
			1, "10 1 0 9"},
		{"a timer with the same key and no histogram",
			func(a *assignment) { a.Spread = true },
			func(a *assignment) { a.Spread = false },
			2 + exits, "10 3 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := assign(t, g)
			c.before(&a)
			k := placedKeeper(t, a)
			g.Do("call 7")
			k.kill()
			c.after(&a)
			k = placedKeeper(t, a)
			k.want("settle", fmt.Sprintf("%d orphans", c.orphans))
			g.Do("call 3")
			k.want("rows", c.rows)
			k.close()
		})
	}
}

// TestTakeOverBehindPad checks that the next monitor adopts a program whose uprobe is behind a landing
// pad, although the request names the address of the pad.
func TestTakeOverBehindPad(t *testing.T) {
	g := rig.Start(t, buildPads(t))
	a := assign(t, g)
	a.Entry, a.Exits = g.Func["pad_push"], g.Exits("pad_push")
	before := g.Code(a.Entry, 16)
	k := placedKeeper(t, a)
	g.Do("all 0 1")
	k.kill()
	g.Do("all 0 1")
	k = successor(t, a)
	k.adopt()
	g.Do("all 0 1")
	k.want("rows", "3 3 0")
	k.close()
	if after := g.Code(a.Entry, 16); !bytes.Equal(before, after) {
		t.Errorf("the code is % x, not % x", after, before)
	}
}

// TestOrphans checks that what no request adopts is removed, and that the next monitor can place the same
// programs again.
func TestOrphans(t *testing.T) {
	g, work := startScenes(t)
	for _, c := range []struct {
		name   string
		change func(t *testing.T, a assignment)
		want   [][2]string // commands and answers
	}{
		{"no request", func(*testing.T, assignment) {},
			[][2]string{{"settle", fmt.Sprintf("%d orphans", 3+len(work.Exits))}, {"recall", "false false"}}},
		{"another version", func(t *testing.T, a assignment) {
			j, err := journal.Open(a.Data)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.Put("kernel/head", map[string]string{"shape": "another"}), j.Close()); err != nil {
				t.Fatal(err)
			}
		}, [][2]string{{"recall", "false false"}, {"settle", "1 orphans"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, a, other := codeOfWork(g), assign(t, g), assign(t, g)
			placedKeeper(t, a).kill()
			if bytes.Equal(before, codeOfWork(g)) {
				t.Error("no uprobe has outlived the monitor")
			}
			newKeeper(t, other).want("settle", "0 orphans") // leftovers of another data directory are not touched
			c.change(t, a)
			k := newKeeper(t, a)
			for _, w := range c.want {
				k.want(w[0], w[1])
			}
			checkCode(t, g, before)
			k.want("keep", "kept")
			k.want("place", "placed")
			g.Do("call 7")
			k.want("rows", "7 7 0")
		})
	}
}

// TestKeptRowsOfManyThreads checks that rows are freed if more threads than there are rows begin and end
// while monitors are killed.
func TestKeptRowsOfManyThreads(t *testing.T) {
	g, a := startScenes(t)
	k := placedKeeper(t, a)
	const threads, rounds = 7000, 3
	for i := range rounds {
		g.Do("onebyone %d 1", threads)
		k.want("threads", "few have rows")
		k.kill()
		g.Do("call 1")
		k = successor(t, a)
		k.want("place", "placed")
		n := threads*(i+1) + i + 1
		k.want("rows", fmt.Sprint(n, n, 0))
	}
	k.close()
}

// TestKilledWhileFolding kills a monitor that has added up rows of ended threads, and has not yet deleted the
// pages with the single rows. It checks that the next monitor counts each row once.
func TestKilledWhileFolding(t *testing.T) {
	g, a := startScenes(t)
	a.Deadly = true
	k := placedKeeper(t, a)
	threads := 0
	for ended := k.ended(); ; {
		g.Do("onebyone 300 1") // there are enough rows without sweeping
		threads += 300
		if ended() {
			break
		}
	}
	g.Do("call 1")
	a.Deadly = false
	k = successor(t, a)
	k.want("place", "placed")
	g.Do("call 1")
	k.want("rows", fmt.Sprint(threads+2, threads+2, 0))
	k.close()
}

// TestExecWithoutAMonitor executes another program in the target while there is no monitor. It checks that the
// uprobes of the former program do not count there, even if the new program maps the same file.
func TestExecWithoutAMonitor(t *testing.T) {
	g, a := startScenes(t, "-no-pie")
	k := placedKeeper(t, a)
	g.Do("call 5")
	k.kill()
	g.Tell("exec")
	g.Ready()
	g.Do("call 5")
	k = successor(t, a)
	k.want("rows", "5 5 0")
	k.want("place", "placed") // again
	k.want("stands", "true")
	k.want("settle", fmt.Sprintf("%d orphans", 1+len(a.Exits)))
	g.Do("call 5")
	k.want("rows", "10 10 0")
}

// TestEndWithoutAMonitor ends the target while there is no monitor. It checks that the next monitor has what
// was measured.
func TestEndWithoutAMonitor(t *testing.T) {
	g, a := startScenes(t)
	k := placedKeeper(t, a)
	g.Do("call 5")
	k.kill()
	g.Do("call 5")
	g.HangUp()
	g.Cmd.Wait() // only its end matters
	k = successor(t, a)
	k.want("settle", "2 orphans")
	k.want("rows", "10 10 0")
}

// TestTakeOverEvents checks that the next monitor adopts programs at events of the kernel.
func TestTakeOverEvents(t *testing.T) {
	g, a := startScenes(t)
	a.Calls = true
	k := placedKeeper(t, a)
	g.Do("nap 1")
	for i := range 4 {
		k.want("rows", fmt.Sprint(1+3*i, 1+3*i, 0))
		k.kill()
		g.Do("nap 1")
		k = successor(t, a)
		g.Do("nap 1")
		k.adopt()
		g.Do("nap 1")
	}
	k.want("rows", "13 13 0")
	k.want("reset", "reset")
	k.kill()
	g.Do("nap 1")
	k = newKeeper(t, a)
	k.want("settle", "4 orphans")
	k.want("keep", "kept")
	k.want("place", "placed")
	g.Do("nap 1")
	k.want("rows", "1 1 0")
	k.close()
}
