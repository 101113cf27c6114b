package probes_test

import (
	"strings"
	"testing"
)

const sampleIt = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:sample="1/1000000">
	<codeRegion from="f.1a2b"/><metric name="WC_TIME"/></instrreq>`

// All executions are counted, however few are timed, and none is lost with the gateway.
func TestSampledProbeOutlivesTheGateway(t *testing.T) {
	timesOutlive(t, sampleIt, `gateway:count="10" gateway:timed="`)
}

// What is timed can be changed while it is sampled, but not to nothing.
func TestSampledProbeDefinedAnew(t *testing.T) {
	h := newHouse(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	h.post(a, sampleIt)
	execute(p, 1)
	if got := h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/><metric name="COUNT"/></ctrlreq>`); !strings.Contains(got, "only times are sampled") {
		t.Errorf("answered %s", got)
	}
	h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/><metric name="COUNT"/><metric name="WC_TIME"/></ctrlreq>`)
	execute(p, 1)
	execute(p, 1)
	got := h.post(a, valueIt)
	if !strings.Contains(got, `<measurement value="2"/>`) || !strings.Contains(got, `gateway:count="2"`) {
		t.Errorf("the value is %s", got)
	}
}
