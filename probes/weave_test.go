package probes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
	"mirador/sir/weave"
)

// wovenUnit is a function of a source.
const wovenUnit = "p:f"

// weaves gives an application a source with a function, and returns the file that it is written to.
func (h *harness) weaves(app string) (out string) {
	h.Helper()
	dir, err := filepath.EvalSymlinks(h.TempDir())
	if err != nil {
		h.Fatal(err)
	}
	out = filepath.Join(dir, "f.c")
	if err := h.weave(app, out, ""); err != nil {
		h.Fatal(err)
	}
	return out
}

// weave gives an application a source with a function and some text behind it.
func (h *harness) weave(app, out, behind string) error {
	text := "int f(void) { return 1; }"
	p := sir.Program{Path: "p", Regions: []sir.Region{{ID: wovenUnit, Kind: sir.Function, File: "f.c", Line: 1, Extent: &sir.Extent{Column: 1, EndLine: 1, EndColumn: len(text)}}}}
	s := probes.Sources{Program: p, Files: []weave.Source{{Path: "f.c", Language: "c", Text: []byte(text + behind)}}, Outs: []string{"file://" + out}, Modes: []os.FileMode{0o600}}
	return h.registry.Weave(probes.WithCaller(h.Context(), "me", deliver.User{UID: os.Geteuid()}), app, s)
}

// TestWovenProbes checks the life of a probe on a region of a source: it is woven at the flush, measures a process
// that is built from what was written, and outlives the gateway in each state.
func TestWovenProbes(t *testing.T) {
	h := newPersistentHarness(t)
	a, err := h.registry.Create("w", 1000)
	if err != nil || a.State() != probes.Empty || a.Status().Owner != 1000 {
		t.Fatal(a.Status(), err)
	}
	out := h.weaves("w")
	if err := h.weave("w", out, strings.Repeat("\n", 60<<20)); err == nil || !strings.Contains(err.Error(), "would take 600 MB of memory until they are woven") {
		t.Error("sources that take 600 MB:", err)
	}
	h.want(a, `<instrreq activated="true"><codeRegion from="p:f"/><metric name="COUNT"/></instrreq>`, `<probe id="probe-1"/>`)
	for request, why := range map[string]string{
		`<instrreq><codeRegion from="p:f"/><metric name="COUNTS"/></instrreq>`:                   "no metric COUNTS",
		`<instrreq><codeRegion from="p:f" to="p:g"/><metric name="COUNT"/></instrreq>`:           "p:g cannot be woven: the sources have no such region",
		`<instrreq><codeRegion from="p:f"/><metric name="COUNT"/><process id="p_9"/></instrreq>`: "p_9",
		`<instrreq><codeRegion from="p:g"/><metric name="COUNT"/></instrreq>`:                    "has no process",
		valueIt: "it waits for a request with flush",
	} {
		if got := h.post(a, request); !strings.Contains(got, why) {
			t.Errorf("%s: %s, want %s", request, got, why)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the source is written before the flush")
	}
	h.want(a, `<instrreq flush="true"/>`, "")
	text, err := os.ReadFile(out)
	id := regexp.MustCompile(`MIRADOR_WEAVING\("(\w+)"\)`).FindSubmatch(text)
	if err != nil || id == nil || !strings.Contains(string(text), `"function:p:f"`) {
		t.Fatalf("%s, %v", text, err)
	}
	h = h.kill()
	a = h.app("w")
	if got := h.post(a, valueIt); !strings.Contains(got, "probe-1 is woven into the source") || a.Status().Owner != 1000 {
		t.Errorf("%s, %+v", got, a.Status())
	}
	p := h.node.Add(812, []string{"bin/mmul"}, 812, 813)
	h.attach("w", 812)
	if got := h.post(a, valueIt); !strings.Contains(got, "no process of application w is built from it") {
		t.Errorf("a program that is not woven: %s", got)
	}
	h.weaving = string(id[1])
	if apps := h.registry.WovenFor("", 812); len(apps) != 1 || apps[0] != "w" {
		t.Errorf("the woven program belongs to the applications %q", apps)
	}
	q := h.node.Add(900, []string{"bin/mmul"}, 900)
	h.attach("w", 900)
	execute(q, 900)
	execute(p, 813) // it joined before it was known to be woven
	h.want(a, valueIt, `<measurement nodeId="n_1" processId="p_2" threadId="t_3" value="1"/>`)
	h = h.kill()
	a = h.app("w")
	execute(q, 900)
	if got := h.post(a, valueIt); !strings.Contains(got, `processId="p_2" threadId="t_3" value="2"`) {
		t.Errorf("after another gateway was killed: %s", got)
	}
	h.want(a, removeIt, `<probe id="probe-1"/>`)
}

// TestWovenElsewhere checks that a process of another application joins that of its weaving, unless that belongs to
// another user.
func TestWovenElsewhere(t *testing.T) {
	h := newHarness(t)
	h.node.Add(812, []string{"bin/mmul"}, 812)
	own := h.attach("own", 812).Status().Owner
	for owner, processes := range map[int]int{own: 1, own + 1: 0} {
		name := fmt.Sprint("weaving", owner)
		a, err := h.registry.Create(name, owner)
		if err != nil {
			t.Fatal(err)
		}
		out := h.weaves(name)
		h.post(a, `<instrreq activated="true" flush="true"><codeRegion from="p:f"/><metric name="COUNT"/></instrreq>`)
		text, err := os.ReadFile(out)
		id := regexp.MustCompile(`MIRADOR_WEAVING\("(\w+)"\)`).FindSubmatch(text)
		if err != nil || id == nil {
			t.Fatalf("%s, %v", text, err)
		}
		h.weaving = string(id[1])
		pid := 900 + processes
		h.node.Add(pid, []string{"bin/mmul"}, pid)
		h.attach(fmt.Sprint("other", owner), pid)
		if list := a.Processes(); len(list) != processes {
			t.Errorf("the application of user %d has the processes %v of user %d", owner, list, own)
		}
	}
}
