package probes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/probes"
)

const leased = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:lease="60s"><codeRegion from="f.1a2b"/><metric name="COUNT"/>
	<measuring delivery="1000"/><process id="p_1"/></instrreq>`

// TestLease checks that a probe is removed when nothing has used it for the time of its lease,
// and that each kind of use renews the lease.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		h.post(a, leased)
		exists := func() bool { return len(a.Probes()) == 1 }
		for _, use := range []func(){
			func() { h.post(a, valueIt) },
			func() { h.post(a, `<ctrlreq action="DEACTIVATE"><probe id="probe-1"/></ctrlreq>`) },
			func() { h.post(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/></ctrlreq>`) },
			func() {
				_, cancel, err := h.registry.Subscribe("probe-1", 0)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3*time.Minute - time.Second) // the lease would end at the same moment otherwise
				cancel()
			},
		} {
			time.Sleep(59 * time.Second)
			use()
		}
		if !exists() {
			t.Fatal("the probe was removed although it was used")
		}
		if end := a.Probes()[0].Status().Expires; end == nil || time.Until(*end) > time.Minute {
			t.Errorf("the lease ends at %v", end)
		}
		h.post(a, `<ctrlreq action="ACTIVATE" xmlns:g="urn:mirador:gateway" g:lease="2h"><probe id="probe-1"/></ctrlreq>`)
		time.Sleep(2*time.Hour - time.Second)
		if !exists() {
			t.Fatal("the probe was removed before its new lease ended")
		}
		time.Sleep(2 * time.Second)
		if exists() || p.Watches() != 0 {
			t.Errorf("the probe exists: %v; %d watches are left", exists(), p.Watches())
		}
		h.want(a, valueIt, "errors: line 1, column 25: no probe probe-1 in application mmul")
	})
}

// TestLeaseBeginsAnewAfterAKill checks that a probe keeps its lease when the gateway is killed.
func TestLeaseBeginsAnewAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPersistentHarness(t)
		h.node.Add(1, []string{"mmul"}, 1)
		h.post(h.attach("", 1), strings.Replace(leased, `<measuring delivery="1000"/>`, "", 1))
		time.Sleep(50 * time.Second)
		h = h.kill()
		time.Sleep(50 * time.Second)
		if n := len(h.app("mmul").Probes()); n != 1 {
			t.Fatalf("%d probes after 50 s", n)
		}
		time.Sleep(11 * time.Second)
		if n := len(h.app("mmul").Probes()); n != 0 || h.app("mmul").State() != probes.Running {
			t.Errorf("%d probes after the end of the lease", n)
		}
	})
}

// TestLeaseEndsInTheFile checks that a document of the probe says why it was removed.
func TestLeaseEndsInTheFile(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	path := filepath.Join(t.TempDir(), "values")
	h.post(a, strings.NewReplacer(`g:lease="60s"`, `g:lease="1s"`, `delivery="1000"`, `delivery="100" destination="file://`+path+`"`).Replace(leased))
	eventually(t, func() bool { return len(a.Probes()) == 0 })
	const notice = `gateway:notice="removed: nothing has used the probe for 1s, its lease"`
	eventually(t, func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Count(string(text), notice) == 1
	})
}
