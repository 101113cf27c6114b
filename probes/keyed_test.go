package probes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir"
	"mirador/probes"
	"mirador/probes/deliver"
)

// send sends a request with a key as a caller, and returns the answer on one line.
func (h *harness) send(a *probes.App, who, key, request string) string {
	h.Helper()
	doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest([]byte(request))
	if err != nil {
		h.Fatal(err)
	}
	ctx := probes.WithCaller(context.Background(), who, deliver.User{UID: -1, Trusted: true})
	if key != "" {
		ctx = probes.WithKey(ctx, key)
	}
	answer, err := a.Answer(ctx, doc, probes.Options{})
	if err != nil {
		return err.Error()
	}
	return line(h, answer)
}

// TestOnce sends requests with keys again: at once, after an error, after the removal of the
// probe, and to the gateway after one that was killed.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPersistentHarness(t)
		h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		want := func(who, key, request, answer string) {
			t.Helper()
			if got := h.send(a, who, key, request); !strings.Contains(got, answer) {
				t.Errorf("%s, %s: %s\n got %s\nwant %s", who, key, request, got, answer)
			}
		}
		spaced := strings.ReplaceAll(countIt, "><", ">\n <")
		attribute := strings.Replace(countIt, "<instrreq ", `<instrreq xmlns:g="urn:mirador:gateway" g:key="ci-1" `, 1)
		wrong := strings.Replace(countIt, "f.1a2b", "nix", 1)
		want("alice", "ci-1", countIt, `<probe id="probe-1"/>`)
		want("alice", "ci-1", spaced, `<probe id="probe-1"/>`)
		want("alice", "", attribute, `<probe id="probe-1"`)
		want("bob", "ci-1", countIt, `<probe id="probe-2"/>`)
		want("alice", "ci-2", countIt, `<probe id="probe-3"/>`)
		want("alice", "ci-1", labelledIt, `the key "ci-1" belongs to another request`)
		want("alice", "ci-3", wrong, "nix")
		want("alice", "ci-3", countIt, `<probe id="probe-4"/>`) // the wrong request has left no key
		h.post(a, removeIt)
		want("alice", "ci-1", countIt, `<probe id="probe-1"/>`)
		h = h.kill()
		a = h.app("mmul")
		for key, probe := range map[string]string{"ci-1": "probe-1", "ci-2": "probe-3", "ci-3": "probe-4"} {
			want("alice", key, countIt, `<probe id="`+probe+`"/>`)
		}
		time.Sleep(25 * time.Hour)
		want("alice", "ci-2", countIt, `<probe id="probe-5"/>`)
		h = h.kill()
		a = h.app("mmul")
		want("alice", "ci-2", countIt, `<probe id="probe-5"/>`)
		want("bob", "ci-1", countIt, `<probe id="probe-6"/>`)
	})
}

// TestMostKeys sends requests with more keys than a caller may have.
func TestMostKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPersistentHarness(t)
		h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		const request, most = `<instrreq><codeRegion from="f.1a2b"/><metric name="COUNT"/></instrreq>`, 1000
		h.send(a, "bob", "key", request)
		for i := range most + 1 {
			time.Sleep(time.Millisecond)
			h.send(a, "alice", fmt.Sprint("key-", i), request)
		}
		h = h.kill()
		a = h.app("mmul")
		for _, again := range []struct{ who, key, probe string }{{"alice", "key-1", "probe-3"}, {"bob", "key", "probe-1"}, {"alice", "key-0", fmt.Sprint("probe-", most+3)}} {
			if got := h.send(a, again.who, again.key, request); got != `<probe id="`+again.probe+`"/>` {
				t.Errorf("%s of %s answers %s, want %s", again.key, again.who, got, again.probe)
			}
		}
	})
}

// TestKeyOfKilled kills the gateway after it has recorded a probe, and before it has recorded the
// key of its request.
func TestKeyOfKilled(t *testing.T) {
	h := newPersistentHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	h.send(h.attach("", 1), "alice", "ci", countIt)
	for _, record := range h.journal.Keys("key/") {
		if err := h.journal.Delete(record); err != nil {
			t.Fatal(err)
		}
	}
	h = h.kill()
	if got := h.send(h.app("mmul"), "alice", "ci", countIt); got != `<probe id="probe-1"/>` {
		t.Error(got)
	}
}
