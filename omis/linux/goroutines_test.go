//go:build linux && amd64

package linux

import (
	"debug/elf"
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// namedBy returns a function that returns the name of a program's function at an address in its file.
func namedBy(t *testing.T, path string) func(pc uint64) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return func(pc uint64) string {
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && pc >= s.Value && pc < s.Value+s.Size {
				return s.Name
			}
		}
		return ""
	}
}

// own returns the functions of package main on a stack, without the functions that the compiler generates
// for go statements: the runtime does not report these.
func own(frames []node.Frame, name func(uint64) string) (list []string) {
	for i, f := range frames {
		pc := f.PC
		if i > 0 {
			pc--
		}
		if n := name(pc); strings.HasPrefix(n, "main.") && !strings.Contains(n, ".gowrap") {
			list = append(list, n)
		}
	}
	return list
}

var goHeader = regexp.MustCompile(`^goroutine (\d+) \[([^\],]*)`)

// runtimeReport is a goroutine as the runtime itself reports it.
type runtimeReport struct {
	state string
	own   []string
}

// reported reads the runtime's report. It omits inlined functions, which have no frames.
func reported(g *target) map[uint64]runtimeReport {
	g.Tell("report")
	list := make(map[uint64]runtimeReport)
	var id uint64
	for line := g.Line(); line != "end"; line = g.Line() {
		if m := goHeader.FindStringSubmatch(line); m != nil {
			id, _ = strconv.ParseUint(m[1], 10, 64)
			list[id] = runtimeReport{state: m[2]}
			continue
		}
		if strings.HasPrefix(line, "main.") && !strings.HasSuffix(line, "(...)") {
			s := list[id]
			s.own = append(s.own, line[:strings.LastIndex(line, "(")])
			list[id] = s
		}
	}
	return list
}

// settled reads the runtime's report when all goroutines wait, except for the first, which reports, and for
// the goroutine that computes.
func settled(t *testing.T, g *target) map[uint64]runtimeReport {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list := reported(g)
		moving := 0
		for id, s := range list {
			if id != 1 && !slices.Equal(s.own, []string{"main.computes"}) && (s.state == "runnable" || s.state == "running") {
				moving++
			}
		}
		if moving == 0 {
			return list
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines still do not wait: %+v", moving, list)
		}
	}
}

// TestGoroutinesAgreeWithRuntime compares the node's list of goroutines with the runtime's report.
func TestGoroutinesAgreeWithRuntime(t *testing.T) {
	for name, flags := range map[string][]string{"static": nil, "position independent": {"-buildmode=pie"}} {
		t.Run(name, func(t *testing.T) {
			path := buildGo(t, "waiting", flags...)
			n, g := openNode(t), start(t, path)
			name := namedBy(t, path)
			bias := uint64(0)
			if modules, err := n.Modules(g.ID); err != nil {
				t.Fatal(err)
			} else if len(flags) > 0 {
				bias = modules[0].Bias
			}
			want := settled(t, g)
			list, err := n.Goroutines(t.Context(), g.ID, 1000)
			if err != nil {
				t.Fatal(err)
			}
			tids, err := proc.Threads(g.PID)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[uint64]node.GoroutineInfo)
			for _, one := range list {
				seen[one.ID] = one
			}
			states := make(map[string]int)
			for id, w := range want {
				got, ok := seen[id]
				frames := own(got.Frames, func(pc uint64) string { return name(pc - bias) })
				if !ok || !slices.Equal(frames, w.own) && id != 1 && (got.State != "running" || len(got.Frames) > 0) { // its thread may handle a signal
					t.Errorf("goroutine %d is %+v with %v, and the runtime reports %+v", id, got, frames, w)
				}
				state := got.State
				if state == "waiting" {
					state = got.Reason
				}
				states[state]++
				switch {
				case id == 1: // has changed its state since it reported
				case slices.Equal(w.own, []string{"main.computes"}):
					if state != "running" && state != "runnable" {
						t.Errorf("the goroutine that computes is %s", state)
					}
				case state != w.state:
					t.Errorf("goroutine %d: %s, and the runtime reports %s", id, state, w.state)
				}
				if state == "running" && !slices.Contains(tids, got.TID) {
					t.Errorf("goroutine %d runs on thread %d", id, got.TID)
				}
			}
			for state, least := range map[string]int{"chan receive": 4, "chan send": 1, "select": 1, "sleep": 1, "sync.Mutex.Lock": 1, "syscall": 1} {
				if states[state] < least {
					t.Errorf("%d goroutines are %s, want %d", states[state], state, least)
				}
			}
			if few, err := n.Goroutines(t.Context(), g.ID, 2); err != nil || slices.ContainsFunc(few, func(i node.GoroutineInfo) bool { return len(i.Frames) > 2 }) {
				t.Errorf("more than 2 frames: %+v (%v)", few, err)
			}
			if none, err := n.Goroutines(t.Context(), g.ID, 0); err != nil || len(none) < len(want) || slices.ContainsFunc(none, func(i node.GoroutineInfo) bool { return len(i.Frames) > 0 }) {
				t.Errorf("a request without frames returned %+v (%v)", none, err)
			}
		})
	}
}

// TestGoroutinesUnknown checks that a Go program without debug information is refused, and that a program in
// another language has no goroutines.
func TestGoroutinesUnknown(t *testing.T) {
	n := openNode(t)
	bare := start(t, buildGo(t, "waiting", "-ldflags=-s -w"))
	if list, err := n.Goroutines(t.Context(), bare.ID, 5); err == nil || !strings.Contains(err.Error(), "debug information") {
		t.Errorf("%v, %v", list, err)
	}
	other := start(t, build(t, "hammer.c"), "2", endless)
	if list, err := n.Goroutines(t.Context(), other.ID, 5); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestGoroutinesHostile writes arbitrary values into the descriptors of goroutines and checks that reading
// them stays within limits and returns.
func TestGoroutinesHostile(t *testing.T) {
	path := buildGo(t, "waiting")
	n := openNode(t)
	values := []uint64{0, 1, 1 << 12, 1<<47 - 8, 1 << 63, 1<<64 - 1}
	g := start(t, path)
	where, ok, err := n.goPrograms.scheduler(t.Context(), g.ID)
	if err != nil || !ok {
		t.Fatal(err)
	}
	first := wordAt(t, n, g.ID, wordAt(t, n, g.ID, where.List)+8*3)
	at := []uint64{where.Count, where.List, where.Reasons, where.Reasons + 8}
	for _, member := range []uint64{0, landing.StackEnd, where.ID, where.Status, where.Thread, where.SP, where.PC, where.BP} {
		at = append(at, first+member)
	}
	for _, addr := range at {
		before := wordAt(t, n, g.ID, addr)
		for _, v := range append(values, addr) {
			// Stop the program until the old value is restored, because it would crash.
			if err := n.Stop(g.ID, nil); err != nil {
				t.Fatal(err)
			}
			put(t, n, g.ID, addr, v)
			list, err := n.Goroutines(t.Context(), g.ID, 1<<20)
			put(t, n, g.ID, addr, before)
			if err := n.Continue(g.ID, nil); err != nil {
				t.Fatal(err)
			}
			frames := 0
			for _, one := range list {
				frames += len(one.Frames)
				if len(one.Reason) > mostReasonText {
					t.Errorf("a reason of %d bytes", len(one.Reason))
				}
			}
			if frames > mostFrames || len(list) > mostListed || err == nil && list == nil {
				t.Errorf("%#x at %#x: %d goroutines, %d frames, %v", v, addr, len(list), frames, err)
			}
		}
	}
	if list, err := n.Goroutines(t.Context(), g.ID, 5); err != nil || len(list) < 10 {
		t.Errorf("%d goroutines (%v)", len(list), err)
	}
}

func wordAt(t *testing.T, n *Node, p omis.ProcID, addr uint64) uint64 {
	t.Helper()
	var b [8]byte
	if _, err := n.ReadMemory(p, addr, b[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

func put(t *testing.T, n *Node, p omis.ProcID, addr, v uint64) {
	t.Helper()
	if err := n.WriteMemory(p, addr, binary.LittleEndian.AppendUint64(nil, v)); err != nil {
		t.Fatal(err)
	}
}
