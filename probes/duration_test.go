package probes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
)

const sysCalls = `<metric name="SYSCALL_COUNT"/>`

// readCalls makes a process call read a number of times.
func readCalls(p *fake.Process, n int) {
	for range n {
		p.SysCall(1, "read", omis.Int(0))
	}
}

// TestDuration checks that a value is measured from one instant to another: what is counted in
// between, also by a thread that begins in between.
func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true">`+sysCalls+`<process id="p_1"/><measuring duration="1000"/></instrreq>`, `<probe id="probe-1"/>`)
		time.Sleep(time.Millisecond) // the measurement has begun
		readCalls(p, 3)
		h.want(a, valueIt, `<measurement/>`)
		time.Sleep(1500 * time.Millisecond)
		readCalls(p, 5)
		h.want(a, valueIt, `<measurement value="3"/>`)
		time.Sleep(time.Minute)
		h.want(a, valueIt, `<measurement value="3"/>`)
		h.want(a, removeIt, `<probe id="probe-1"/>`)
	})
}

// TestDurationInIntervals checks that each interval begins a measurement, that statistics are over
// the differences, and that each is delivered.
func TestDurationInIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true">`+sysCalls+`<process id="p_1"/>
			<measuring interval="1000" duration="400" delivery="-1"><aggregate function="MAXIMUM"/><aggregate function="SUM"/></measuring></instrreq>`, `<probe id="probe-1"/>`)
		documents, cancel, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		for _, c := range []struct {
			in, out int
			want    string
		}{
			{2, 100, `<measurement><measurement processId="p_1" value="2"/><measurement value="2"/></measurement>`},
			{7, 100, `<measurement><measurement processId="p_1" value="7"/><measurement value="9"/></measurement>`},
			{0, 100, `<measurement><measurement processId="p_1" value="7"/><measurement value="9"/></measurement>`},
			{1, 100, `<measurement><measurement processId="p_1" value="7"/><measurement value="10"/></measurement>`},
		} {
			time.Sleep(100 * time.Millisecond)
			readCalls(p, c.in)
			began := time.Now()
			if got := line(t, (<-documents).Document); got != c.want || time.Since(began) != 300*time.Millisecond {
				t.Errorf("after %v: %s, want %s", time.Since(began), got, c.want)
			}
			readCalls(p, c.out)
			time.Sleep(600 * time.Millisecond)
		}
		h.want(a, removeIt, `<probe id="probe-1"/>`)
	})
}

// TestDurationAsLongAsTheInterval checks that nothing is counted twice or left out if a
// measurement ends when the next one begins.
func TestDurationAsLongAsTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true">`+sysCalls+`<process id="p_1"/>
			<measuring interval="1000" duration="1000"><aggregate function="SUM"/><aggregate function="MAXIMUM"/></measuring></instrreq>`, `<probe id="probe-1"/>`)
		time.Sleep(500 * time.Millisecond)
		for range 50 {
			readCalls(p, 1)
			time.Sleep(time.Second)
		}
		h.want(a, valueIt, `<measurement><measurement value="50"/><measurement processId="p_1" value="1"/></measurement>`)
	})
}

// TestDurationOfLevels checks that the difference of a level may be negative.
func TestDurationOfLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1, 2, 3)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring duration="1000"/><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
		time.Sleep(500 * time.Millisecond)
		p.EndThread(2)
		p.EndThread(3)
		time.Sleep(time.Second)
		h.want(a, valueIt, `<measurement value="-2"/>`)
	})
}

func TestDurationsAreRefused(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	for request, why := range map[string]string{
		`<instrreq>` + sysCalls + `<measuring interval="10" duration="11"/></instrreq>`: "duration 11: it is longer than the interval of 10; the next measurement would begin before this one ends",
	} {
		if got := h.post(a, request); len(got) < len(why) || got[len(got)-len(why):] != why {
			t.Errorf("%s: %s, want %s", request, got, why)
		}
	}
}
