package probes_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir"
	"mirador/probes"
)

// eventually waits until done returns true.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition is not true after 30 s")
		}
	}
}

func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/>
			<measuring delivery="1000"/><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
		documents, cancel, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`<measurement value="1"/>`, `<measurement value="2"/>`} {
			execute(p, 1)
			before := time.Now()
			if got := line(t, (<-documents).Document); got != want || time.Since(before) != time.Second {
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

// TestSlowListener checks that a listener that reads nothing loses documents, and that delivery
// does not wait for it.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring delivery="-1" interval="100"/></instrreq>`, `<probe id="probe-1"/>`)
		documents, _, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.want(a, removeIt, `<probe id="probe-1"/>`)
		n := 0
		for range documents { // REMOVE has closed the channel
			n++
		}
		if n != 64 {
			t.Errorf("%d documents were kept, want the oldest 64", n)
		}
	})
}

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq flush="true"><metric name="THREAD_COUNT"/><process id="p_1"/>
			<measuring interval="1000"><aggregate function="SUM"/><aggregate function="MAXIMUM"/></measuring></instrreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement><measurement/><measurement/></measurement>`)
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		time.Sleep(1500 * time.Millisecond) // measured at 0 s and 1 s
		p.Spawn(1, 2)
		time.Sleep(time.Second) // measured at 2 s
		h.want(a, valueIt, `<measurement><measurement value="4"/><measurement processId="p_1" value="2"/></measurement>`)
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		time.Sleep(time.Minute)
		h.want(a, valueIt, `<measurement><measurement value="4"/><measurement processId="p_1" value="2"/></measurement>`)
		h.want(a, `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement><measurement/><measurement/></measurement>`)
	})
}

func TestNothingToSubscribeTo(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	h.want(a, countIt, `<probe id="probe-1"/>`)
	if _, _, err := h.registry.Subscribe("probe-1", 0); kind(err) != probes.Conflict {
		t.Errorf("a probe that delivers nothing: %v", err)
	}
	if _, _, err := h.registry.Subscribe("probe-2", 0); kind(err) != probes.NotFound {
		t.Errorf("an unknown probe: %v", err)
	}
}

// TestDeliveryOfEachMeasurement checks that delivery="-1" requires an interval or a region. A
// probe without them measures only when a VALUE asks for it.
func TestDeliveryOfEachMeasurement(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	const refused = "without an interval nothing is measured until a VALUE asks for it; add an interval or a duration, or give a delivery in milliseconds"
	h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring delivery="-1"/></instrreq>`,
		"errors: line 1, column 70: delivery -1: "+refused)
	h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring delivery="-1" interval="0"/></instrreq>`,
		"errors: line 1, column 70: delivery -1: "+refused)
	// As a default, delivery="-1" applies only to requests with an interval.
	h.want(a, `<instrreq><measuring delivery="-1"/></instrreq>`, "")
	h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/></instrreq>`, `<probe id="probe-1"/>`)
	h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><measuring interval="10"/></instrreq>`, `<probe id="probe-2"/>`)
	h.want(a, `<ctrlreq action="RESET"><probe id="probe-1"/><measuring delivery="-1"/></ctrlreq>`,
		"errors: line 1, column 46: delivery -1: "+refused)
	h.want(a, `<ctrlreq action="RESET"><probe id="probe-2"/><measuring interval="0"/></ctrlreq>`,
		"errors: line 1, column 46: delivery -1: "+refused)
	documents, cancel, err := h.registry.Subscribe("probe-2", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	if got := line(t, (<-documents).Document); got != `<measurement value="1"/>` {
		t.Error(got)
	}
}

// TestDeliveryEndsWithTheProcess checks that the streams of a probe deliver the last value once and
// end when the probe's processes have ended, and that its samples stay unchanged.
func TestDeliveryEndsWithTheProcess(t *testing.T) {
	for name, request := range map[string]string{
		"region": `<instrreq flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><measuring delivery="1000"/><process id="p_1"/></instrreq>`,
		"sampled": `<instrreq flush="true"><metric name="THREAD_COUNT"/><process id="p_1"/>
			<measuring interval="1000" delivery="-1"><aggregate function="SUM"/></measuring></instrreq>`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				p := h.node.Add(1, []string{"mmul"}, 1)
				h.node.Add(2, []string{"other"}, 2)
				a := h.attach("", 1, 2)
				h.want(a, request, `<probe id="probe-1"/>`)
				documents, cancel, err := h.registry.Subscribe("probe-1", 0)
				if err != nil {
					t.Fatal(err)
				}
				defer cancel()
				// Activated now, because the first measurement is made at once, and sent to those who listen.
				h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
				execute(p, 1)
				time.Sleep(500 * time.Millisecond)
				if name == "sampled" { // the first measurement was made, and delivered, at once
					if got := line(t, (<-documents).Document); got != `<measurement value="1"/>` {
						t.Error(got)
					}
				}
				p.End()
				began, n := time.Now(), 0
				for d := range documents {
					n++
					if got := line(t, d.Document); got != `<measurement value="1"/>` {
						t.Error(got)
					}
				}
				if took := time.Since(began); n != 1 || took > time.Second {
					t.Errorf("%d documents in %v after the end of the process", n, took)
				}
				time.Sleep(time.Minute)
				h.want(a, valueIt, `<measurement value="1"/>`)
				if _, _, err := h.registry.Subscribe("probe-1", 0); kind(err) != probes.Conflict {
					t.Errorf("a stream of a probe whose process has ended: %v", err)
				}
			})
		})
	}
}

// TestSamplingAfterAProcess checks that an ended process adds nothing to later samples.
func TestSamplingAfterAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		h.node.Add(2, []string{"mmul"}, 2)
		a := h.attach("", 1, 2)
		h.want(a, `<instrreq activated="true" flush="true"><metric name="THREAD_COUNT"/><process id="*"/>
			<measuring interval="1000"><aggregate function="SUM"/></measuring></instrreq>`, `<probe id="probe-1"/>`)
		time.Sleep(500 * time.Millisecond) // measured at 0 s: 2
		p.End()
		time.Sleep(2 * time.Second) // measured at 1 s and 2 s: 1 each
		h.want(a, valueIt, `<measurement value="4"/>`)
	})
}

// TestFlushWithFailedRequests checks that a request that has become impossible does not prevent
// the requests that are flushed with it.
func TestFlushWithFailedRequests(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	p := h.node.Add(2, []string{"mmul"}, 2)
	a := h.attach("", 1, 2)
	count := func(process, more string) string {
		return `<instrreq activated="true" ` + more + `><codeRegion from="f.1a2b"/><metric name="COUNT"/><process id="` + process + `"/></instrreq>`
	}
	const details = `g:details="true" xmlns:g="urn:mirador:gateway"`
	const why = "probe-1, asked for earlier: no process p_2; there is p_1"
	for _, id := range []string{"probe-1", "probe-2", "probe-3"} {
		h.want(a, count("p_2", ""), `<probe id="`+id+`"/>`)
	}
	p.End()
	h.want(a, removeIt[:len(removeIt)-len(`<probe id="probe-1"/></ctrlreq>`)]+`<probe id="probe-3"/></ctrlreq>`, `<probe id="probe-3"/>`)
	h.want(a, count("p_1", `flush="true" `+details), `<probe id="probe-4" xmlns:gateway="urn:mirador:gateway" gateway:notice="`+
		why+`&#10;`+strings.Replace(why, "probe-1", "probe-2", 1)+`"><gateway:placement where="trap" why="its actions need nothing but the event itself; nothing is cheaper: this monitor generates no code for the program or the kernel" cost="10000" rough="true"/></probe>`)
	h.want(a, strings.Replace(valueIt, "probe-1", "probe-4", 1), `<measurement value="0"/>`)
	h.want(a, valueIt, "errors: line 1, column 25: probe-1 could not be installed: no process p_2; there is p_1; remove it")
	// The answer to a control request that flushes concerns only the probes that it names.
	p = h.node.Add(3, []string{"mmul"}, 3)
	if _, err := h.registry.Attach(t.Context(), a.Name(), []int{3}); err != nil {
		t.Fatal(err)
	}
	h.want(a, count("p_3", ""), `<probe id="probe-5"/>`)
	p.End()
	h.want(a, `<ctrlreq action="VALUE" flush="true"><probe id="probe-4"/></ctrlreq>`, `<measurement value="0"/>`)
	// The answer to a request that only flushes contains only the errors.
	p = h.node.Add(4, []string{"mmul"}, 4)
	if _, err := h.registry.Attach(t.Context(), a.Name(), []int{4}); err != nil {
		t.Fatal(err)
	}
	h.want(a, count("p_4", ""), `<probe id="probe-6"/>`)
	p.End()
	h.want(a, `<instrreq flush="true"/>`, "errors: line 1, column 1: probe-6, asked for earlier: no process p_4; there is p_1")
}

func BenchmarkValue(b *testing.B) {
	h := newHarness(b)
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
