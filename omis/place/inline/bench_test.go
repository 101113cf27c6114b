//go:build linux && amd64

package inline_test

import (
	"fmt"
	"testing"

	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// work is a function's body of about 46 ns: a chain of multiplications.
var work = []byte{
	0x48, 0x89, 0xf8, // mov %rdi, %rax
	0xb9, 0x30, 0, 0, 0, // mov $48, %ecx
	0x48, 0x69, 0xc0, 0x6d, 0x4e, 0xc6, 0x41, // 1: imul $1103515245, %rax, %rax
	0x48, 0x05, 0x39, 0x30, 0, 0, // add $12345, %rax
	0xff, 0xc9, // dec %ecx
	0x75, 0xef, // jnz 1b
}

// BenchmarkCode measures what the code adds to a call, in nanoseconds: for calls that need each other's
// results (LB), and for calls that may overlap (TB). Bare and probed calls alternate.
func BenchmarkCode(b *testing.B) {
	h := newHost(b, 64*gigabyte)
	h.body = work
	p := newPlacer(b, h)
	sums, intervals := newStore(b, p, h.ID, program.StoreSums), newStore(b, p, h.ID, program.StoreIntervals)
	one := program.Op{Do: program.OpAdd, Value: 1, Store: sums}
	start, stop := program.Op{Do: program.OpStart, Store: intervals}, program.Op{Do: program.OpStop, Store: intervals}
	startFast, stopFast := start, stop
	startFast.Clock, stopFast.Clock = program.ClockFast, program.ClockFast
	startSome, stopSome := start, stop
	startSome.OneIn, stopSome.OneIn = 100, 100
	startSome.Store = newStore(b, p, h.ID, program.StoreIntervals)
	stopSome.Store = startSome.Store
	for _, function := range []int{bare, probed} {
		if err := h.write(h.place(function, atBegin)); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		active bool
		at     map[int]program.Op
	}{
		{"nothing", false, map[int]program.Op{}},
		{"off", false, map[int]program.Op{atBegin: one}},
		{"off inside", false, map[int]program.Op{atBody: one}},
		{"count", true, map[int]program.Op{atBegin: one}},
		{"count at the return", true, map[int]program.Op{atEnd: one}},
		{"count inside", true, map[int]program.Op{atBody: one}},
		{"add 5", true, map[int]program.Op{atBegin: {Do: program.OpAdd, Value: 5, Store: sums}}},
		{"time, fast", true, map[int]program.Op{atBegin: startFast, atEnd: stopFast}},
		{"time, ordered", true, map[int]program.Op{atBegin: start, atEnd: stop}},
		{"time one in 100, ordered", true, map[int]program.Op{atBegin: startSome, atEnd: stopSome}},
		{"count at both", true, map[int]program.Op{atBegin: one, atEnd: one}},
	} {
		b.Run(c.name, func(b *testing.B) { h.added(b, p, c.active, c.at) })
	}
}

// BenchmarkClocks measures what timing adds to a call by each kind of clock, for intervals of threads and
// of goroutines.
func BenchmarkClocks(b *testing.B) {
	for _, goes := range []bool{false, true} {
		for _, k := range []clock.Kind{clock.Counter, clock.Page, clock.Function} {
			if goes && k == clock.Function {
				continue // refused
			}
			h := newHost(b, 64*gigabyte)
			h.body, h.goes = work, goes
			which := h.fakePage(half).clock
			if k != clock.Page {
				which = forced(b, k)
			}
			p := inline.NewWith(h, which)
			b.Cleanup(func() { p.Close() })
			intervals := newStore(b, p, h.ID, program.StoreIntervals)
			for _, function := range []int{bare, probed} {
				if err := h.write(h.place(function, atBegin)); err != nil {
					b.Fatal(err)
				}
			}
			for name, how := range map[string]program.Clock{"ordered": program.ClockOrdered, "fast": program.ClockFast} {
				b.Run(fmt.Sprintf("%v, %s, goroutines %v", k, name, goes), func(b *testing.B) {
					h.added(b, p, true, map[int]program.Op{
						atBegin: {Do: program.OpStart, Store: intervals, Clock: how}, atEnd: {Do: program.OpStop, Store: intervals, Clock: how},
					})
				})
			}
		}
	}
}

// Functions of benchmarks.
const bare, probed = 1, 2

// added reports what ops add to a call.
func (h *host) added(b *testing.B, p *inline.Placer, active bool, at map[int]program.Op) {
	for where, op := range at {
		w := h.watch(probed, where)
		w.Event = node.EventReachedAddr
		list, errs := p.Place([]program.Placing{{Watch: w, Program: program.Program{op}}})
		if errs[0] != nil {
			b.Fatal(errs[0])
		}
		list[0].SetActive(active)
		defer p.Remove(list)
	}
	var least [2][3]int // dependent, function
	for b.Loop() {
		for dependent := range least {
			for _, function := range []int{bare, probed} {
				var ps int
				fmt.Sscan(h.do("time", function, dependent), &ps)
				if at := &least[dependent][function]; *at == 0 || ps < *at {
					*at = ps
				}
			}
		}
	}
	for dependent, unit := range []string{"ns-TB", "ns-LB"} {
		b.ReportMetric(float64(least[dependent][probed]-least[dependent][bare])/1000, unit)
	}
	b.ReportMetric(0, "ns/op")
}
