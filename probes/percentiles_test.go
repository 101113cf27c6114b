package probes_test

import (
	"strings"
	"testing"
)

const spreadIt = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:sample="1/1" g:percentiles="50 99.9">
	<codeRegion from="f.1a2b"/><metric name="WC_TIME"/></instrreq>`

// TestPercentilesOutliveTheGateway checks that percentiles cover the times from before and after a
// kill of the gateway.
func TestPercentilesOutliveTheGateway(t *testing.T) {
	timesOutlive(t, spreadIt, `gateway:timed="10"[^>]*><gateway:percentile of="50" value="[0-9.]+" error="[0-9.]+"/><gateway:percentile of="99.9" `)
}

// TestPercentilesRedefined checks that a probe with percentiles can be redefined, but must measure
// times.
func TestPercentilesRedefined(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	h.post(a, spreadIt)
	execute(p, 1)
	if got := h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/><metric name="COUNT"/></ctrlreq>`); !strings.Contains(got, "percentiles 50 99.9: only what is measured at both ends") {
		t.Errorf("answered %s", got)
	}
	h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/><metric name="COUNT"/><metric name="CPU_TIME"/></ctrlreq>`)
	execute(p, 1)
	got := h.post(a, valueIt)
	if !strings.Contains(got, `<measurement value="1"/>`) || strings.Count(got, "<gateway:percentile ") != 2 {
		t.Errorf("the value is %s", got)
	}
	h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`)
	if got := h.post(a, valueIt); strings.Contains(got, "percentile") {
		t.Errorf("after a reset the value is %s", got)
	}
}
