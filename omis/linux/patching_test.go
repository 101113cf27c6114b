//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
	"mirador/omis/program"
)

// counting returns a Patch.Make whose code adds 1 to the word at an offset in shared memory.
func counting(g node.Ground, offset uint64) func(node.Spot) ([]byte, error) {
	return func(s node.Spot) ([]byte, error) {
		b := []byte{0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0x50} // lea -128(%rsp), %rsp; pushf; push %rax
		b = append(b, 0x80, 0x3d)                             // cmpb $0, Switch
		b = binary.LittleEndian.AppendUint32(b, uint32(s.Switch-(s.Code+uint64(len(b))+5)))
		b = append(b, 0, 0x74, 14)                                                   // je behind the count
		b = binary.LittleEndian.AppendUint64(append(b, 0x48, 0xb8), g.Base()+offset) // mov $counter, %rax
		b = append(b, 0xf0, 0x48, 0xff, 0x00)                                        // lock incq (%rax)
		return append(b, 0x58, 0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0), nil     // pop %rax; popf; lea 128(%rsp), %rsp
	}
}

func counted(g node.Ground, offset uint64) uint64 {
	return binary.LittleEndian.Uint64(g.Shared()[offset:])
}

// instructions returns the addresses of the instructions of the target's function, up to its return, and the
// address of the return. The function has at most size bytes.
func instructions(t *testing.T, n *Node, g *target, size int) (addrs []uint64, last uint64) {
	t.Helper()
	code := make([]byte, size)
	if _, err := n.ReadMemory(g.ID, g.Addr, code); err != nil {
		t.Fatal(err)
	}
	addrs = boundaries(g.Addr, code)
	return addrs, addrs[len(addrs)-1]
}

// boundaries returns the addresses of the instructions in code, up to a return.
func boundaries(begin uint64, code []byte) (addrs []uint64) {
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return addrs
		}
		addrs = append(addrs, begin+uint64(at))
		if inst.Op == x86asm.RET {
			break
		}
		at += inst.Len
	}
	return addrs
}

func mustPatch(t *testing.T, n *Node, p omis.ProcID, list []node.Patch) []node.Patched {
	t.Helper()
	made, errs := n.Patch(p, list)
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%#x: %v", list[i].Addr, err)
		}
	}
	return made
}

func activate(t *testing.T, list []node.Patched) {
	t.Helper()
	for _, p := range list {
		if err := p.SetActive(true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPatch counts the calls and the returns of a function.
func TestPatch(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "300000"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d GB at %#x, numbers at %#x, %v", len(ground.Shared())>>30, ground.Base(), ground.TID(), ground.Self())
	_, last := instructions(t, n, g, 100)
	begin := time.Now()
	made := mustPatch(t, n, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, 0)}, {Addr: last, Make: counting(ground, 8)}})
	t.Logf("patched in %v", time.Since(begin))
	activate(t, made)
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if entries, exits := counted(ground, 0), counted(ground, 8); entries != 1200000 || exits != 1200000 {
		t.Errorf("%d calls, %d returns", entries, exits)
	}
	if err := n.Unpatch(g.ID, made); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}

// everywhere returns patches that count executions at each of some addresses.
func everywhere(g node.Ground, addrs []uint64) []node.Patch {
	var list []node.Patch
	for i, addr := range addrs {
		list = append(list, node.Patch{Addr: addr, Make: counting(g, uint64(i)*64)})
	}
	return list
}

// TestPatchUnderLoad patches all instructions of a function that 64 threads execute, and removes the patches, again
// and again.
func TestPatchUnderLoad(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"64", "500000"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	addrs, _ := instructions(t, n, g, 100)
	done := make(chan string, 1)
	go func() { done <- g.Line() }()
	rounds, got := 0, ""
	for ; got == "" && (rounds < 200 || counted(ground, 0) == 0); rounds++ {
		made, errs := n.Patch(g.ID, everywhere(ground, addrs))
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		made = slices.DeleteFunc(made, func(p node.Patched) bool { return p == nil })
		activate(t, made)
		if rounds == 0 {
			g.Begin()
		}
		select {
		case got = <-done:
		case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
		}
		if err := n.Unpatch(g.ID, made); err != nil {
			t.Fatal(err)
		}
	}
	checkUntouched(t, g)
	if got == "" {
		got = <-done
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Logf("%d rounds, %d counted", rounds, counted(ground, 0))
	if counted(ground, 0) == 0 {
		t.Error("no execution was counted")
	}
}

// TestPatchKilled kills monitors while they insert patches, after that, and while they remove them.
func TestPatchKilled(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "100000"}
	want := subject.Alone(t, hammer, args...)
	for _, mode := range []string{"patch", "repatch"} {
		t.Run(mode, func(t *testing.T) {
			for i := range 6 {
				g := start(t, hammer, args...)
				monitor := startMonitor(t, g, mode)
				if mode == "patch" && i%2 == 0 {
					monitor.Line()
				}
				g.Begin()
				time.Sleep(time.Duration(rand.IntN(20000)) * time.Microsecond)
				monitor.Kill()
				if got := g.Finish(); got != want {
					t.Fatalf("round %d: got %s, want %s", i, got, want)
				}
			}
		})
	}
}

// runPatcher patches all instructions of the function at an address. If again is set, it removes the patches and
// starts again, without end.
func runPatcher(n *Node, p omis.ProcID, addr uint64, again bool) error {
	ground, err := n.Ground(p)
	if err != nil {
		return err
	}
	code := make([]byte, 100)
	if _, err := n.ReadMemory(p, addr, code); err != nil {
		return err
	}
	addrs := boundaries(addr, code)
	for {
		made, errs := n.Patch(p, everywhere(ground, addrs))
		if made[0] == nil {
			return errs[0]
		}
		for _, p := range made {
			if p != nil {
				_ = p.SetActive(true)
			}
		}
		if !again {
			fmt.Println("planted")
			select {}
		}
		if err := n.Unpatch(p, made); err != nil {
			return err
		}
	}
}

// TestPatchPrecedence checks that a patch and a watch cannot be at the same address, and that ReadMemory shows
// neither.
func TestPatchPrecedence(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "1", "1000")
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, 32)
	if _, err := n.ReadMemory(g.ID, g.Addr, code); err != nil {
		t.Fatal(err)
	}
	patch := []node.Patch{{Addr: g.Addr, Make: counting(ground, 0)}}
	made := mustPatch(t, n, g.ID, patch)
	const first = 3 // length of the first instruction, after which the jump is
	if _, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr + first}, func(*node.Hit) {}); err == nil {
		t.Error("a watch was set at a patch")
	}
	if err := n.WriteMemory(g.ID, g.Addr+first, code[first:first+1]); err == nil {
		t.Error("WriteMemory changed the code below a patch")
	}
	again := make([]byte, len(code))
	if _, err := n.ReadMemory(g.ID, g.Addr, again); err != nil || !slices.Equal(code, again) {
		t.Errorf("% x is read as % x, %v", code, again, err)
	}
	if err := n.Unpatch(g.ID, made); err != nil {
		t.Fatal(err)
	}
	_, _, cancel := watchHeld(t, n, g, nil)
	var refusal *program.Refusal
	if _, errs := n.Patch(g.ID, patch); !errors.As(errs[0], &refusal) {
		t.Errorf("the error of a patch at a watch is %v", errs[0])
	}
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	if err := n.Unpatch(g.ID, mustPatch(t, n, g.ID, patch)); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
}
