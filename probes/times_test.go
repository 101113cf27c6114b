package probes_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/omis/engine/fake"
)

// executeFor makes the first thread execute the unit, with a duration in milliseconds of the
// bubble's clock.
func executeFor(p *fake.Process, ms int) {
	p.Reach(1, entry, 0x7ffc1000)
	time.Sleep(time.Duration(ms) * time.Millisecond)
	p.Reach(1, leave, 0x7ffc1000)
}

// TestRegionInIntervals checks that the value of a region is measured at an interval, that the
// statistics are over these values, and that each is delivered.
func TestRegionInIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/>
			<measuring interval="1000" delivery="-1"><aggregate function="MAXIMUM"/><aggregate function="SUM"/></measuring><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
		documents, cancel, err := h.registry.Subscribe("probe-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		// The first value is measured at the activation.
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		for _, want := range []string{
			`<measurement><measurement processId="p_1" value="0"/><measurement value="0"/></measurement>`, // at once
			`<measurement><measurement processId="p_1" value="2"/><measurement value="2"/></measurement>`,
			`<measurement><measurement processId="p_1" value="4"/><measurement value="6"/></measurement>`,
		} {
			time.Sleep(500 * time.Millisecond)
			execute(p, 1)
			execute(p, 1)
			time.Sleep(400 * time.Millisecond)
			if got := line(t, (<-documents).Document); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// TestRegionForATime checks that a duration measures what the executions in it add up to: their
// number, and their time.
func TestRegionForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><metric name="WC_TIME"/>
			<measuring interval="1000" duration="500"/><process id="p_1"/></instrreq>`, `<probe id="probe-1"/>`)
		h.want(a, valueIt, `<measurement><measurement/><measurement/></measurement>`)
		h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`, `<probe id="probe-1"/>`)
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			executeFor(p, 100)
			executeFor(p, 200)
			time.Sleep(200 * time.Millisecond)
			executeFor(p, 100) // outside the duration
			if got := h.post(a, valueIt); !strings.HasPrefix(got, `<measurement><measurement value="2"/><measurement value="300`) {
				t.Errorf("2 executions of 300 ms are reported as %s", got)
			}
			time.Sleep(300 * time.Millisecond)
		}
	})
}

// TestDefaultsForRegions checks that defaults are imposed only where they make sense.
func TestDefaultsForRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.want(a, `<instrreq><measuring interval="1000" duration="500"><aggregate function="MAXIMUM"/></measuring></instrreq>`, "")
		const percentiles = `xmlns:g="urn:mirador:gateway" g:percentiles="50"`
		for _, request := range []string{
			`<codeRegion from="f.1a2b"/><metric name="COUNT"/>`,                            // both
			`<metric name="THREAD_COUNT"/>`,                                                // both: the difference of a level
			`<metric name="THREAD_COUNT"/><measuring interval="100"/>`,                     // its interval is shorter than the duration
			`<codeRegion from="f.1a2b"/><metric name="COUNT"/><measuring interval="100"/>`, // shorter than the duration
		} {
			if got := h.post(a, `<instrreq activated="true" flush="true">`+request+`<process id="p_1"/></instrreq>`); !strings.HasPrefix(got, "<probe") {
				t.Errorf("%s: %s", request, got)
			}
		}
		if got := h.post(a, `<instrreq activated="true" flush="true" `+percentiles+`><codeRegion from="f.1a2b"/><metric name="WC_TIME"/></instrreq>`); !strings.HasPrefix(got, `<probe id="probe-5"`) {
			t.Errorf("percentiles: %s", got) // of all executions, so at no interval
		}
		time.Sleep(time.Millisecond)
		execute(p, 1)
		time.Sleep(800 * time.Millisecond)
		for id, want := range map[string]string{
			"probe-1": `<measurement processId="p_1" value="1"/>`,
			"probe-2": `<measurement processId="p_1" value="0"/>`,
			"probe-3": `<measurement processId="p_1" value="1"/>`,
			"probe-4": `<measurement processId="p_1" value="1"/>`,
		} {
			h.want(a, strings.Replace(valueIt, "probe-1", id, 1), want)
		}
	})
}
