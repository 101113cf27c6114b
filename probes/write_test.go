package probes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mirador/omis/node"
	"mirador/probes/journal"
)

// records returns the keys of the journal's lines, in the order of writing.
func (h *harness) records() []string {
	h.Helper()
	text, err := os.ReadFile(filepath.Join(h.data, journal.File))
	if err != nil {
		h.Fatal(err)
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, `{"key":"`)
		key, _, _ := strings.Cut(rest, `"`)
		keys = append(keys, key)
	}
	return keys
}

// TestJournalOfWhatChanged checks that a request writes only what it has changed. With thousands of
// probes, writing everything would take all the time.
func TestJournalOfWhatChanged(t *testing.T) {
	const ask = `<instrreq activated="true" flush="%t"><codeRegion from="f.1a2b"/><metric name="COUNT"/></instrreq>`
	h := newPersistentHarness(t)
	h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	a := h.attach("", 812)
	for _, step := range []struct {
		request string
		written []string
	}{
		{fmt.Sprintf(ask, false), []string{"issued", "probe/probe-1"}},
		{fmt.Sprintf(ask, false), []string{"issued", "probe/probe-2"}},
		{fmt.Sprintf(ask, true), []string{"issued", "probe/probe-1", "probe/probe-2", "probe/probe-3"}},
		{valueIt, nil},
		{`<ctrlreq action="DEACTIVATE"><probe id="probe-2"/></ctrlreq>`, []string{"probe/probe-2"}},
		{removeIt, []string{"probe/probe-1"}},
		{`<instrreq flush="true"/>`, nil},
	} {
		before := len(h.records())
		if answer := h.post(a, step.request); strings.HasPrefix(answer, "errors") {
			t.Fatal(answer)
		}
		written := slices.DeleteFunc(h.records()[before:], func(key string) bool { return strings.HasPrefix(key, "thread/") })
		slices.Sort(written)
		if !slices.Equal(written, step.written) {
			t.Errorf("%s wrote %q, not %q", step.request, written, step.written)
		}
	}
}

// TestFailedProbeIsNotRestored checks that the journal does not keep a probe whose request fails.
func TestFailedProbeIsNotRestored(t *testing.T) {
	h := newPersistentHarness(t)
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	h.placer.Refuse = func(node.Watch) error { return errors.New("not here") }
	p.Unmapped = []uint64{leave}
	a := h.attach("", 812)
	if answer := h.post(a, strings.Replace(countIt, "COUNT", "WC_TIME", 1)); !strings.HasPrefix(answer, "errors") {
		t.Fatalf("answered %s", answer)
	}
	next := h.kill()
	if left := next.registry.Probes(); len(left) > 0 {
		t.Errorf("%s was restored", left[0].ID())
	}
}
