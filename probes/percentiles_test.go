package probes_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// TestPercentilesInIntervals checks that percentiles and samples beside values that are measured at an interval describe all
// executions until then, and beside those of a duration the executions in it; with aggregates those of all durations; also
// when the gateway is killed.
func TestPercentilesInIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPersistentHarness(t)
		p := h.node.Add(812, []string{"bin/mmul"}, 1)
		a := h.attach("", 812)
		ask := func(measuring string) {
			t.Helper()
			h.post(a, `<instrreq flush="true" activated="true" xmlns:g="urn:mirador:gateway" g:sample="1/1" g:percentiles="50 100"><codeRegion from="f.1a2b"/><metric name="WC_TIME"/>
				<measuring interval="1000"`+measuring+`/><process id="p_1"/></instrreq>`)
		}
		ask("")
		ask(` duration="1000"`)
		check := func(probe, value, sample string, percentiles ...string) {
			t.Helper()
			got := h.post(a, strings.Replace(valueIt, "probe-1", probe, 1))
			want := regexp.MustCompile(`^<measurement value="` + value + `" [^>]*gateway:` + sample + `" [^>]*><gateway:percentile of="50" value="` +
				percentiles[0] + `" error="[0-9.]+"/><gateway:percentile of="100" value="` + percentiles[1] + `" error="[0-9.]+"/></measurement>$`)
			if !want.MatchString(got) {
				t.Errorf("%s: %s, want %s", probe, got, want)
			}
		}
		time.Sleep(time.Millisecond) // both are measured for the first time
		for _, ms := range []int{10, 10, 10, 100} {
			executeFor(p, ms)
		}
		time.Sleep(time.Second)
		check("probe-1", "100", `count="4" gateway:timed="4`, `10[.0-9]*`, `9[.0-9]*`)
		check("probe-2", "130", `count="4" gateway:timed="4`, `10[.0-9]*`, `9[.0-9]*`)
		executeFor(p, 200)
		executeFor(p, 200)
		time.Sleep(time.Second)
		check("probe-1", "200", `count="6" gateway:timed="6`, `10[.0-9]*`, `19[.0-9]*`)
		check("probe-2", "400", `count="2" gateway:timed="2`, `19[.0-9]*`, `19[.0-9]*`)
		h.want(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/><probe id="probe-2"/><measuring><aggregate function="SUM"/></measuring></ctrlreq>`,
			`<measurement><measurement probeId="probe-1"/><measurement probeId="probe-2"/></measurement>`)
		both := func() {
			t.Helper()
			check("probe-1", "300", `count="6" gateway:timed="6`, `10[.0-9]*`, `19[.0-9]*`)
			check("probe-2", "530", `count="6" gateway:timed="6`, `10[.0-9]*`, `19[.0-9]*`)
		}
		both()
		h = h.kill()
		a = h.app("mmul")
		both()
	})
}
