package probes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mirador/mir"
	"mirador/probes"
	"mirador/probes/deliver"
)

// toDestination returns a request that counts by process and delivers often.
func toDestination(uri string) string {
	return fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><measuring delivery="10" destination="%s"/><process id="p_1"/></instrreq>`, uri)
}

// delivered returns the numbers and the values of the documents in a file.
func delivered(t *testing.T, path string) (numbers, values []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^<\?mirador probe="probe-1" number="(\d+)" lost="0"\?><measurement value="(\d+)"/>$`).FindAllStringSubmatch(string(text), -1) {
		numbers, values = append(numbers, m[1]), append(values, m[2])
	}
	if len(numbers) != strings.Count(string(text), "\n") {
		t.Errorf("the file has other lines:\n%s", text)
	}
	return numbers, values
}

// TestLastValuesAreDelivered checks that a file has the final values, however the measuring
// ends.
func TestLastValuesAreDelivered(t *testing.T) {
	for _, c := range []struct {
		how string
		end func(*harness, *probes.App)
	}{
		{"removed", func(h *harness, a *probes.App) { h.want(a, removeIt, `<probe id="probe-1"/>`) }},
		{"released", func(h *harness, a *probes.App) {
			if err := a.Release(h.Context(), false); err != nil {
				h.Error(err)
			}
		}},
		{"terminated", func(h *harness, a *probes.App) { h.node.Process(1).End() }},
		{"shut down", func(h *harness, a *probes.App) {
			if err := h.registry.Close(h.Context()); err != nil {
				h.Error(err)
			}
		}},
	} {
		t.Run(c.how, func(t *testing.T) {
			h := newHarness(t)
			p := h.node.Add(1, []string{"mmul"}, 1)
			a := h.attach("", 1)
			path := filepath.Join(t.TempDir(), "values")
			h.want(a, strings.Replace(toDestination("file://"+path), `delivery="10"`, `delivery="3600000"`, 1), `<probe id="probe-1"/>`)
			for range 42 {
				execute(p, 1)
			}
			c.end(h, a)
			eventually(t, func() bool {
				text, err := os.ReadFile(path)
				return err == nil && strings.HasSuffix(string(text), "\n")
			})
			if numbers, values := delivered(t, path); len(values) != 1 || values[0] != "42" || numbers[0] != "1" {
				t.Errorf("documents %v with the values %v", numbers, values)
			}
		})
	}
}

// TestDestinationChanges redirects a probe from a file to a server and back to its stream.
func TestDestinationChanges(t *testing.T) {
	var mu sync.Mutex
	received := 0
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received++
		if r.Header.Get("Mirador-Number") != fmt.Sprint(received) {
			t.Errorf("document %s after %d others", r.Header.Get("Mirador-Number"), received-1)
		}
	}))
	defer s.Close()
	arrived := func() int {
		mu.Lock()
		defer mu.Unlock()
		return received
	}
	h := newHarness(t, s.URL)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	path := filepath.Join(t.TempDir(), "values")
	h.want(a, toDestination("file://"+path), `<probe id="probe-1"/>`)
	eventually(t, func() bool { numbers, _ := delivered(t, path); return len(numbers) > 0 })
	h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/><measuring destination="`+s.URL+`/in"/></ctrlreq>`, `<probe id="probe-1"/>`)
	eventually(t, func() bool { return arrived() > 2 })
	status := a.Probes()[0].Status()
	if len(status.Deliveries) != 1 || status.Deliveries[0].Destination != s.URL+"/in" || status.Deliveries[0].Delivered == 0 {
		t.Errorf("the deliveries are %+v", status.Deliveries)
	}
	h.want(a, `<ctrlreq action="ACTIVATE"><probe id="probe-1"/><measuring destination=""/></ctrlreq>`, `<probe id="probe-1"/>`)
	eventually(t, func() bool { return len(a.Probes()[0].Status().Deliveries) == 0 })
	h.want(a, removeIt, `<probe id="probe-1"/>`)
}

// TestDestinationsAreRefused checks that requests whose destination cannot be used define no
// probe, and set no default destination.
func TestDestinationsAreRefused(t *testing.T) {
	h := newHarness(t)
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("", 1)
	for uri, why := range map[string]string{
		"http://127.0.0.1/x":      "its configuration allows file:///",
		"file:///proc/self/x":     "symbolic link",
		"file:///missing/x":       "no such file or directory",
		"file:///tmp":             "is a directory",
		"mailto:x@example.com":    "file, unix, http and https are known",
		"file:///tmp/x?color=red": `no parameter "color"`,
	} {
		if got := h.post(a, toDestination(uri)); !strings.Contains(got, "errors: line 1, column 90: destination: ") || !strings.Contains(got, why) {
			t.Errorf("%s: %s, want %q", uri, got, why)
		}
		if got := h.post(a, `<instrreq><measuring destination="`+uri+`"/></instrreq>`); !strings.Contains(got, why) {
			t.Errorf("as a default %s: %s, want %q", uri, got, why)
		}
	}
	if n := len(a.Probes()); n != 0 {
		t.Errorf("there are %d probes", n)
	}
	doc, err := mir.Decode([]byte(toDestination("file://"+t.TempDir()+"/x")), mir.RequestLimits())
	if err != nil {
		t.Fatal(err)
	}
	remote := probes.WithCaller(t.Context(), "uid -1", deliver.User{UID: -1})
	if _, err := a.Answer(remote, doc, probes.Options{}); err == nil || !strings.Contains(err.Error(), "Unix socket") {
		t.Errorf("for an unknown user the error is %v", err)
	}
}
