package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/examples/targets"
	"mirador/examples/targets/report"
	"mirador/mir"
)

// TestWalkWithCurl makes a first user's requests, with curl over both transports.
func TestWalkWithCurl(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	target := targets.Start(t, "mmul", "--wait", "--stay", "3", "8", "10")
	s.must(t, "", "attach", "--app", "mmul", strconv.Itoa(target.PID))
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "token"))
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string][]string{
		"unix": {"--unix-socket", s.socket, "http://mirador"},
		"tcp":  {"-H", "Authorization: Bearer " + strings.TrimSpace(string(token)), s.url},
	} {
		url := at[len(at)-1]
		post := func(document string, more ...string) []string {
			return append(append(append([]string{}, at[:len(at)-1]...), more...), "-d", document, url+"/mir")
		}
		t.Run(name, func(t *testing.T) { walk(t, target.PID, target.Path, post) })
	}
	if status, body := curl(t, "-d", "<snapshotreq/>", s.url+"/mir"); status != 401 || !strings.Contains(body, "the token is in the file token") {
		t.Errorf("without the token: %d %s", status, body)
	}
}

// walk measures a function and checks that the code is unchanged afterwards. The target waits, so
// all counts are 0; other tests check counts.
func walk(t *testing.T, pid int, path string, post func(string, ...string) []string) {
	before := textOf(t, pid, path)
	snapshot := wants(t, post(`<snapshotreq named="true" stack="8"/>`)...)
	for _, part := range []string{`name="mmul" master="true"`, `name="multiplier-2"`, "<stack>main+0x", "<stack>run+0x"} {
		if !strings.Contains(snapshot, part) {
			t.Errorf("%q is missing in %s", part, snapshot)
		}
	}
	structure := wants(t, post(`<sirreq><resource in="file://`+path+`"/></sirreq>`)...)
	id := unitID(t, structure, "dot")
	request := `<instrreq activated="true" flush="true"><codeRegion from="` + id + `"/><metric name="COUNT"/><metric name="WC_TIME"/><process id="*"/></instrreq>`
	explained := wants(t, post(request, "-H", "Prefer: explain")...)
	if !strings.Contains(explained, "thread_reached_addr") || !strings.Contains(explained, "pa_counter_add") {
		t.Errorf("the explanation is %s", explained)
	}
	planted := wants(t, post(request, "-H", "Prefer: return=representation")...)
	if where := regexp.MustCompile(`where="[a-z]+"`); where.FindString(explained) != where.FindString(planted) {
		t.Errorf("the probe is %s, but the explanation was %s", planted, explained)
	}
	probe := probeID(t, planted)
	if bytes.Equal(before, textOf(t, pid, path)) {
		t.Error("the code contains no breakpoint")
	}
	control := func(action string) string {
		return wants(t, post(`<ctrlreq action="`+action+`"><probe id="`+probe+`"/></ctrlreq>`)...)
	}
	if value := control("VALUE"); !strings.Contains(value, `value="0"`) {
		t.Errorf("the value for a function that was not called: %s", value)
	}
	for _, action := range []string{"DEACTIVATE", "ACTIVATE", "RESET", "REMOVE"} {
		control(action)
	}
	if !bytes.Equal(before, textOf(t, pid, path)) {
		t.Error("the probe was removed, but the code differs from before")
	}
	status, body := curl(t, post(`<ctrlreq action="VALUE"><probe id="`+probe+`"/></ctrlreq>`)...)
	if status != 404 || !strings.Contains(body, probe) {
		t.Errorf("a removed probe: %d %s", status, body)
	}
}

// textOf reads the program's code from the process's memory.
func textOf(t *testing.T, pid int, path string) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) r-xp .* ` + regexp.QuoteMeta(path) + `$`).FindSubmatch(maps)
	if m == nil {
		t.Fatalf("no code of %s in\n%s", path, maps)
	}
	low, _ := strconv.ParseInt(string(m[1]), 16, 64)
	high, _ := strconv.ParseInt(string(m[2]), 16, 64)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	text := make([]byte, high-low)
	if _, err := mem.ReadAt(text, low); err != nil {
		t.Fatal(err)
	}
	return text
}

// probeID returns the id in a probe document.
func probeID(t *testing.T, reply string) string {
	t.Helper()
	document, err := mir.Decode([]byte(reply), mir.ReplyLimits())
	if err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	probe, ok := document.(*mir.Probe)
	if !ok {
		t.Fatalf("no probe: %s", reply)
	}
	return probe.ID
}

// valueOf returns the value of a measurement document with one value.
func valueOf(t *testing.T, reply string) string {
	t.Helper()
	document, err := mir.Decode([]byte(reply), mir.ReplyLimits())
	if err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	m, ok := document.(*mir.Measurement)
	if !ok || len(m.Children) > 0 {
		t.Fatalf("not one value: %s", reply)
	}
	return m.Value
}

// unitID returns the id of a function in a structure document.
func unitID(t *testing.T, structure, name string) string {
	t.Helper()
	m := regexp.MustCompile(`<unit id="([^"]*)" name="` + regexp.QuoteMeta(name) + `"`).FindStringSubmatch(structure)
	if m == nil {
		t.Fatalf("no unit %s in %s", name, structure)
	}
	return m[1]
}

// TestErrorsOfDocuments checks the answers to mistakes that new users make.
func TestErrorsOfDocuments(t *testing.T) {
	s := startServe(t, os.Geteuid())
	target := targets.Start(t, "mmul", "--wait")
	s.must(t, "", "attach", strconv.Itoa(target.PID))
	for _, c := range []struct {
		document string
		status   int
		words    string
	}{
		{"<snapshotreq>\n  <thread=\"1\"/></snapshotreq>", 400, "line 2, column "},
		{`<snapshotreq named="maybe"/>`, 400, "line 1, column "},
		{`<instrreq><codeRegion from="mmul:dott"/><metric name="COUNT"/></instrreq>`, 404, "mmul:dot"},
		{`<instrreq><codeRegion from="mmul:dot"/><metric name="COUNTS"/></instrreq>`, 422, "did you mean COUNT?"},
		{`<instrreq><codeRegion from="mmul:dot"/><metric name="CACHE_MISSES"/></instrreq>`, 422, "papi:PAPI_L3_TCM"},
		{`<ctrlreq action="VALUE"><probe id="probe-99"/></ctrlreq>`, 404, "probe-99"},
		{`<sirreq><resource in="file:///etc/passwd"/></sirreq>`, 403, "configuration"},
	} {
		status, body := curl(t, "--unix-socket", s.socket, "-d", c.document, "http://mirador/mir")
		if status != c.status || !strings.Contains(body, c.words) || !strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(body, `<?xml version="1.0" encoding="UTF-8"?>`)), "<errors>") {
			t.Errorf("%s: status %d, want %d with %q: %s", c.document, status, c.status, c.words, body)
		}
	}
}

// inEachPlacement runs a test with a gateway whose probes run inline, in the kernel, or by trap.
func inEachPlacement(t *testing.T, test func(t *testing.T, s *served, placement string)) {
	for placement, allowed := range map[string]string{"inline": placements, "kernel": "kernel,trap", "trap": "trap"} {
		t.Run(placement, func(t *testing.T) { test(t, startServe(t, os.Geteuid(), "--placements", allowed), placement) })
	}
}

// TestCountsAgree compares probes with the target's own counts.
func TestCountsAgree(t *testing.T) { inEachPlacement(t, countsAgree) }

func countsAgree(t *testing.T, s *served, placement string) {
	target := targets.Start(t, "mmul", "--wait", "--stay", "3", "8", "10")
	s.must(t, "", "attach", "--app", "mmul", strconv.Itoa(target.PID))
	probes := map[string]string{}
	for function, unit := range map[string]string{
		"dot": "mmul:dot", "multiply": "mmul:multiply", "fill": "libmmul.so:fill", "transpose": "libmmul.so:transpose",
	} {
		probes[function] = probeID(t, s.must(t, `<instrreq activated="true" flush="true"><codeRegion from="`+unit+`"/><metric name="COUNT"/><process id="*"/></instrreq>`, "post", "-"))
	}
	if got := wants(t, "--unix-socket", s.socket, "http://mirador/probes/"+probes["dot"]); !strings.Contains(got, `"placement": "`+placement+`"`) {
		t.Errorf("not in the placement %s: %s", placement, got)
	}
	target.Go(t)
	own := target.Done(t)
	for function, probe := range probes {
		got := valueOf(t, s.must(t, `<ctrlreq action="VALUE"><probe id="`+probe+`"/></ctrlreq>`, "post", "-"))
		if want := strconv.FormatInt(own.Total[function], 10); got != want {
			t.Errorf("%s: measured %s, the target itself counted %s", function, got, want)
		}
	}
	target.Go(t) // lets the target end
	if err := target.Wait(t); err != nil {
		t.Error(err)
	}
}

// TestTargetsOutliveTheGateway kills the gateway while a busy target has probes.
func TestTargetsOutliveTheGateway(t *testing.T) { inEachPlacement(t, targetsOutlive) }

func targetsOutlive(t *testing.T, s *served, _ string) {
	undisturbed := targets.Start(t, "mmul", "3", "16", "50")
	target := targets.Start(t, "mmul", "--wait", "--pace", "5000", "3", "16", "50") // it still works when the gateway is killed
	s.must(t, "", "attach", "--app", "mmul", strconv.Itoa(target.PID))
	for _, id := range []string{"mmul:dot", "mmul:multiply", "libmmul.so:fill", "mmul:careful"} {
		s.must(t, `<instrreq activated="true" flush="true"><codeRegion from="`+id+`"/><metric name="COUNT"/><metric name="WC_TIME"/></instrreq>`, "post", "-")
	}
	target.Go(t)
	for busy := false; !busy; {
		busy = target.Report(t).Total["dot"] > 1000
	}
	s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.ended
	if err := target.Wait(t); err != nil {
		t.Errorf("the target: %v\n%s", err, target.Output())
	}
	if err := undisturbed.Wait(t); err != nil {
		t.Error(err)
	}
	got, want := lastReport(t, target), lastReport(t, undisturbed)
	if !got.OK || got.Checksum != want.Checksum || got.Total["dot"] != want.Total["dot"] {
		t.Errorf("the target computed %s (%v), and %s without probes", got.Checksum, got.OK, want.Checksum)
	}
}

func lastReport(t *testing.T, target *targets.Process) *report.Report {
	t.Helper()
	r, err := report.Last(strings.NewReader(target.Output()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
