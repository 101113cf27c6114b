package probes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir"
	"mirador/probes"
)

// eventually waits for what another goroutine does soon.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/>
			<measuring delivery="1000"/><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
		documents, cancel, err := h.registry.Subscribe("probe-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`<measurement value="1"/>`, `<measurement value="2"/>`} {
			execute(p, 1)
			before := time.Now()
			if got := line(t, <-documents); got != want || time.Since(before) != time.Second {
				t.Errorf("after %v: %s, want %s", time.Since(before), got, want)
			}
		}
		cancel()
		cancel()
		if _, open := <-documents; open {
			t.Error("a document after cancel")
		}
	})
}

// A listener that does not listen loses documents; nobody waits for it.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring delivery="-1" interval="100"/></instrreq>`, `<probe id="probe-1"/>`)
		documents, _, err := h.registry.Subscribe("probe-1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.want(a, removeIt, `<probe id="probe-1"/>`)
		n := 0
		for range documents { // closed by the removal
			n++
		}
		if n == 0 || n > 20 {
			t.Errorf("%d documents were kept", n)
		}
	})
}

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq flush="true"><metric name="THREAD_COUNT"/><process id="p_1"/>
			<measuring interval="1000"><aggregate function="SUM"/><aggregate function="MAXIMUM"/></measuring></instrreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement><measurement/><measurement/></measurement>`)
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		time.Sleep(1500 * time.Millisecond) // measured at 0 s and 1 s
		p.Spawn(1, 2)
		time.Sleep(time.Second) // and at 2 s
		h.want(a, valueIt, `<measurement><measurement value="4"/><measurement processId="p_1" value="2"/></measurement>`)
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		time.Sleep(time.Minute)
		h.want(a, valueIt, `<measurement><measurement value="4"/><measurement processId="p_1" value="2"/></measurement>`)
		h.want(a, `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement><measurement/><measurement/></measurement>`)
	})
}

func TestNothingToSubscribeTo(t *testing.T) {
	h := newHouse(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	if _, _, err := h.registry.Subscribe("probe-1"); kind(err) != probes.Conflict {
		t.Errorf("a probe that delivers nothing: %v", err)
	}
	if _, _, err := h.registry.Subscribe("probe-2"); kind(err) != probes.NotFound {
		t.Errorf("a probe that is not there: %v", err)
	}
}

func BenchmarkValue(b *testing.B) {
	h := newHouse(b)
	tids := []int{1, 2, 3, 4}
	p := h.node.Add(1, []string{"mmul"}, tids...)
	a := h.attach("", 1)
	h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><metric name="WC_TIME"/></instrreq>`, `<probe id="probe-1"/>`)
	for _, tid := range tids {
		execute(p, tid)
	}
	request := &mir.ControlRequest{Action: mir.Value, Probes: []mir.ProbeRef{{ID: "probe-1"}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Answer(b.Context(), request, probes.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
