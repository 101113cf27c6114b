//go:build linux && amd64

package inline_test

import (
	"testing"

	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// leaves has function 2 of a host begin intervals that it never ends, as a function does that an exception
// or a longjmp leaves.
func leaves(t *testing.T, h *host, p *inline.Placer, intervals program.Store, oneIn int64) {
	t.Helper()
	place(t, p, h.watch(2, atBegin), program.Op{Do: program.OpStart, OneIn: oneIn, Store: intervals})
}

// A call with the stack pointer of one that was left does not use its interval, whichever of the two is
// timed.
func TestSampledLeftBeside(t *testing.T) {
	h := newHost(t, gigabyte)
	p := newPlacer(t, h)
	_, intervals := sampled(t, h, p, 2)
	leaves(t, h, p, intervals, 2)
	var left int64
	const turns = 60
	for turn := range int64(turns) {
		h.do("call", 2, 1)
		if rows(t, intervals)[0].Open == 1 {
			left++
		}
		h.do("call", 1, 1)
		if r := rows(t, intervals)[0]; r.Unfinished != left || r.Count != turn+1-left || r.Skipped != turn+1 || r.Open != 0 {
			t.Fatalf("after %d turns in which %d were left: %+v", turn+1, left, r.Intervals)
		}
	}
	if left == 0 || left == turns {
		t.Errorf("of %d turns %d were left", turns, left)
	}
}

// The end of a call removes intervals further down that were left, whether the call itself is timed or not.
func TestSampledLeftInside(t *testing.T) {
	h := newHost(t, gigabyte)
	p := newPlacer(t, h)
	// Function 1 calls function 2: a call instruction, and the distance from its end.
	const from, to = functionSize + functionSize/2 + 5, 2 * functionSize
	h.body = []byte{0xe8, (to - from) & 0xff, (to - from) >> 8, 0, 0}
	_, intervals := sampled(t, h, p, 3)
	h.body = nil
	leaves(t, h, p, intervals, 3)
	var left, count int64
	const calls = 300 // of each function
	for n := range int64(calls) {
		h.do("call", 1, 1)
		r := rows(t, intervals)[0]
		if r.Open != 0 || r.Count+r.Unfinished+r.Skipped != 2*(n+1) || r.Count+r.Unfinished < 2*(n+1)/3 {
			t.Fatalf("after %d calls: %+v", n+1, r.Intervals)
		}
		left, count = r.Unfinished, r.Count
	}
	if left < calls/6 || count < calls/6 || left+count != 2*calls/3 {
		t.Errorf("of %d calls of each %d were left, %d timed", calls, left, count)
	}
}
