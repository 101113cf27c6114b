//go:build linux && amd64

package inline_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

func TestMain(m *testing.M) {
	if inline.IsFolder() {
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := removeHost(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// checked makes the host run code at a place with random registers, flags and memory.
func (h *host) checked(p interface {
	Place([]program.Placing) ([]program.Placed, []error)
	Remove([]program.Placed) error
}, where int, w node.Watch, active bool, steps ...program.Op) {
	h.t.Helper()
	const number = 5
	w.Event, w.Proc, w.Addr = node.EventReachedAddr, h.ID, h.place(number, where)
	list, errs := p.Place([]program.Placing{{Watch: w, Program: steps}})
	if errs[0] != nil {
		h.t.Fatal(errs[0])
	}
	list[0].SetActive(active)
	h.endByJump(number)
	dead := 1
	if where == atBody {
		dead = 0
	}
	if got := h.do("check", number, 2000, dead); got != "done" {
		h.t.Errorf("at %d, active %v: %s", where, active, got)
	}
	if err := p.Remove(list); err != nil {
		h.t.Fatal(err)
	}
}

// endByJump replaces a function's return by a jump to the end of the check.
func (h *host) endByJump(number int) {
	f := h.funcs[uint64(number)]
	at := uint64(number * functionSize)
	for _, list := range [][]*point{f.begin, f.body, f.end} {
		for _, p := range list {
			b, err := p.patch.Make(node.Spot{Code: h.at, Switch: h.at + p.flag, Entry: p.patch.Addr%8 == atBegin, Return: p.patch.Addr%8 == atEnd})
			if err != nil {
				h.t.Fatal(err)
			}
			// Another monitor can relocate the code.
			if moved, err := relocate.Piece(h.code[at:][:len(b)], h.at+at, h.at); err != nil || !bytes.Equal(moved, b) {
				h.t.Fatalf("moved it is % x, not % x, %v", moved, b, err)
			}
			at += uint64(len(b))
		}
	}
	if h.code[at] != 0xc3 {
		h.t.Fatal("the code is not where it should be")
	}
	b := []byte{0xff, 0x25, 0, 0, 0, 0} // jmp *0(%rip)
	for shift := 0; shift < 64; shift += 8 {
		b = append(b, byte(h.back>>shift))
	}
	copy(h.code[at:], b)
}

// The code leaves all registers, the flags and the stack unchanged.
func TestNothingElseChanges(t *testing.T) {
	for _, size := range []int{gigabyte, 64 * gigabyte} {
		h := newHost(t, size)
		p := newPlacer(t, h)
		sums, intervals := newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreIntervals)
		one := program.Op{Do: program.OpAdd, Value: 1, Store: sums}
		start, stop := program.Op{Do: program.OpStart, Store: intervals}, program.Op{Do: program.OpStop, Store: intervals}
		some := newStore(t, p, h.ID, program.StoreIntervals)
		startSome, stopSome := program.Op{Do: program.OpStart, OneIn: 3, Store: some}, program.Op{Do: program.OpStop, OneIn: 3, Store: some}
		stopFast := stopSome
		stopFast.Clock = program.ClockFast
		short, long := newStore(t, p, h.ID, program.StoreTraces), newStore(t, p, h.ID, program.StoreTraces)
		note, noteMore := program.Op{Do: program.OpTrace, Mark: -1, Room: 1, Store: short}, program.Op{Do: program.OpTrace, Value: 1 << 40, Room: 65536, Store: long}
		all, err := proc.Threads(h.PID)
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		me, others := []int{h.PID}, slices.DeleteFunc(all, func(tid int) bool { return tid == h.PID })
		for _, where := range []int{atBegin, atBody, atEnd} {
			for _, active := range []bool{true, false} {
				h.checked(p, where, node.Watch{}, active, one)
				h.checked(p, where, node.Watch{}, active, program.Op{Do: program.OpAdd, Value: -7, Store: sums})
				h.checked(p, where, node.Watch{}, active, program.Op{Do: program.OpAdd, Value: 1 << 40, Store: sums})
				h.checked(p, where, node.Watch{}, active, start)
				h.checked(p, where, node.Watch{}, active, stop)
				h.checked(p, where, node.Watch{}, active, startSome)
				h.checked(p, where, node.Watch{}, active, startSome, stopSome)
				h.checked(p, where, node.Watch{}, active, stopFast, startSome)
				h.checked(p, where, node.Watch{}, active, note)
				h.checked(p, where, node.Watch{}, active, noteMore, stop, note, start)
				h.checked(p, where, node.Watch{Threads: me}, active, one, stop, start, one, stop)
				h.checked(p, where, node.Watch{Threads: others}, active, one, start, stop)
			}
		}
		if list := rows(t, intervals); len(list) != 1 || list[0].Count == 0 || list[0].Unfinished == 0 {
			t.Errorf("rows %+v", list)
		}
		if list := rows(t, some); len(list) != 1 || list[0].Count == 0 || list[0].Skipped < 2*list[0].Count {
			t.Errorf("rows %+v", list)
		}
		for trace, want := range map[program.Store]int64{short: 3 * 2 * 2000, long: 3 * 2000} {
			if list := rows(t, trace); len(list) != 1 || list[0].Value != want {
				t.Errorf("rows %+v, want %d notes", list, want)
			}
		}
		// Each active program has added at three places, in 2000 calls each: 1, -7, 1<<40, and twice 1 in
		// the program for this thread alone.
		if list := rows(t, sums); len(list) != 1 || list[0].Value != 3*2000*(1-7+1<<40+2) {
			t.Errorf("rows %+v", list)
		}
	}
}
