package probes_test

import (
	"strings"
	"testing"

	"mirador/mir"
	"mirador/probes"
	"mirador/probes/deliver"
)

const labelledIt = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:label="ci-42" g:note="the nightly build"><codeRegion from="f.1a2b"/><metric name="COUNT"/></instrreq>`

// TestSelectByLabel reads and removes probes by their label, in one application only.
func TestSelectByLabel(t *testing.T) {
	h := newHarness(t)
	p := h.node.Add(1, []string{"mmul"}, 1)
	a, other := h.attach("", 1), h.attach("other", 1)
	byLabel := func(action string) string {
		return `<ctrlreq action="` + action + `" xmlns:g="urn:mirador:gateway"><probe g:label="ci-42"/></ctrlreq>`
	}
	h.post(a, labelledIt)
	h.post(other, labelledIt)
	execute(p, 1)
	// The request does not name the probe, so the answer does.
	h.want(a, byLabel("VALUE"), `<measurement><measurement probeId="probe-1" nodeId="n_1" processId="p_1" threadId="t_1" value="1"/></measurement>`)
	h.post(a, countIt)
	h.post(a, labelledIt)
	if got := h.post(a, byLabel("VALUE")); !strings.Contains(got, `probeId="probe-1"`) || !strings.Contains(got, `probeId="probe-4"`) || strings.Contains(got, "probe-3") {
		t.Error(got)
	}
	h.want(a, byLabel("REMOVE"), `<measurement><measurement probeId="probe-1"/><measurement probeId="probe-4"/></measurement>`)
	if len(a.Probes()) != 1 || len(other.Probes()) != 1 {
		t.Errorf("left are %d and %d probes", len(a.Probes()), len(other.Probes()))
	}
	h.want(a, byLabel("REMOVE"), "errors: line 1, column 56: no probe of application mmul has the label ci-42")
}

// TestOwner checks that a probe shows who requested it, and its note, also after a SIGKILL.
func TestOwner(t *testing.T) {
	h := newPersistentHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest([]byte(labelledIt))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Answer(probes.WithCaller(t.Context(), "uid 1000", deliver.User{UID: 1000}), doc, probes.Options{}); err != nil {
		t.Fatal(err)
	}
	h = h.kill()
	if s := h.app("mmul").Probes()[0].Status(); s.Owner != "uid 1000" || s.Label != "ci-42" || s.Note != "the nightly build" {
		t.Errorf("the probe is %+v", s)
	}
}
