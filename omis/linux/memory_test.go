//go:build linux && amd64

package linux

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"mirador/omis"
)

func TestWriteMemory(t *testing.T) {
	n, g, _, _, data := startRegisters(t)
	want := []byte("exactly these 24 bytes !")
	if err := n.WriteMemory(g.ID, data+4, want); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := n.ReadMemory(g.ID, data+4, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	expression := fmt.Sprintf("*(char*)%d", data+4)
	if v := gdbValues(t, g.ID.PID, g.ID.PID, []string{expression})[expression]; v != "0x65" {
		t.Errorf("gdb reads %s", v)
	}
	maps, end := mappingEnd(t, g, data)
	before := make([]byte, 16)
	n.ReadMemory(g.ID, end-16, before)
	err := n.WriteMemory(g.ID, end-16, make([]byte, 64))
	wantError(t, err, omis.ParameterError, fmt.Sprintf("%#x", end))
	after := make([]byte, 16)
	if n.ReadMemory(g.ID, end-16, after); !bytes.Equal(before, after) {
		t.Errorf("a failed write changed the memory of %v", maps)
	}
	checkUntouched(t, g)
}

// mappingEnd returns the end of the adjacent mappings around addr, and the path of the last one.
func mappingEnd(t *testing.T, g *target, addr uint64) (mapping string, end uint64) {
	t.Helper()
	maps, err := procMaps(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := maps.At(addr)
	for ok {
		mapping, end = m.Path, m.End
		m, ok = maps.At(end)
	}
	return mapping, end
}

// TestBreakpointsAreHidden checks that ReadMemory returns the program's bytes at a breakpoint, and that
// WriteMemory changes them without removing the breakpoint.
func TestBreakpointsAreHidden(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "2", endless)
	before := make([]byte, 64)
	n.ReadMemory(g.ID, g.Addr-16, before)
	hits, cancel := watchWork(t, n, g)
	g.Begin()
	after := make([]byte, 64)
	if _, err := n.ReadMemory(g.ID, g.Addr-16, after); err != nil || !bytes.Equal(before, after) {
		t.Errorf("% x\n% x %v", before, after, err)
	}
	// Write the same code over the breakpoint: it still has hits.
	if err := n.WriteMemory(g.ID, g.Addr-16, before); err != nil {
		t.Fatal(err)
	}
	awaitMore(t, hits)
	// Write another instruction, a jump to itself: each thread hits the breakpoint again and again.
	loop := append([]byte{0xeb, 0xfe}, before[18:]...)
	if err := n.WriteMemory(g.ID, g.Addr, loop[:2]); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2)
	n.ReadMemory(g.ID, g.Addr, got)
	if !bytes.Equal(got, loop[:2]) {
		t.Errorf("% x", got)
	}
	awaitMore(t, hits)
	if err := n.WriteMemory(g.ID, g.Addr, before[16:18]); err != nil {
		t.Fatal(err)
	}
	awaitMore(t, hits)
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
}

func awaitMore(t *testing.T, count *atomic.Int64) {
	t.Helper()
	begin := count.Load()
	eventually(t, "there are ten more events", func() bool { return count.Load() >= begin+10 })
}
