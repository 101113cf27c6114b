package probes_test

import (
	"strings"
	"testing"
)

const sampleIt = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:sample="1/1000000">
	<codeRegion from="f.1a2b"/><metric name="WC_TIME"/></instrreq>`

// TestSampledProbeOutlivesTheGateway checks that all executions are counted although few are
// timed, and that a kill of the gateway loses none.
func TestSampledProbeOutlivesTheGateway(t *testing.T) {
	timesOutlive(t, sampleIt, `gateway:count="10" gateway:timed="`)
}

// TestSampledProbeRedefined checks that a sampled probe can be redefined, but must measure times.
func TestSampledProbeRedefined(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	h.post(a, sampleIt)
	execute(p, 1)
	if got := h.post(a, `<ctrlreq action="RESET"><probe id="probe-1"/><metric name="COUNT"/></ctrlreq>`); !strings.Contains(got, "only what is measured at both ends of an execution is sampled") {
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
