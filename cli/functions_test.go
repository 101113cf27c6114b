package cli

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"

	"mirador/omis/linux/subject"
)

// TestMetricsOfFunctions compares metrics that are measured at functions of libraries with the
// program's own count of its calls, and with its clock.
func TestMetricsOfFunctions(t *testing.T) {
	s := startServe(t, 0)
	p := subject.Start(t, exec.Command(subject.Compile(t, "waits", "testdata/waits.c", "-O1", "-pthread")))
	p.Line() // it is ready
	s.must(t, "", "attach", strconv.Itoa(p.PID))
	s.mir(t, "waits", `<instrreq activated="true" flush="true"><metric name="THREAD_WAITED_COUNT"/><metric name="THREAD_WAITED_TIME"/>`+
		`<metric name="linux:ALLOC_COUNT"/><metric name="linux:REALLOC_COUNT"/><metric name="linux:FREE_COUNT"/></instrreq>`)
	var waited, took float64
	do := func(line string, n int) {
		p.Tell("%s %d", line, n)
		var ns float64
		if _, err := fmt.Sscan(p.Line(), &ns); err != nil {
			t.Fatal(err)
		}
		took += ns / 1e6
	}
	check := func(what string, got, least, most float64) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %g, by the program %g to %g", what, got, least, most)
		}
	}
	do("wait", 20)
	v := s.values(t, "waits", "probe-1", 5)
	waited = 20
	check("THREAD_WAITED_COUNT", v[0], waited, waited)
	check("THREAD_WAITED_TIME", v[1], waited*2*0.9, took)
	for range 3 {
		do("allocate", 100)
	}
	v = s.values(t, "waits", "probe-1", 5)
	check("ALLOC_COUNT", v[2], 600, 600)
	check("REALLOC_COUNT", v[3], 300, 300)
	check("FREE_COUNT", v[4], 600, 600)
	do("notify", 5) // the other thread was waiting before the probe, and waits again
	v = s.values(t, "waits", "probe-1", 5)
	check("THREAD_WAITED_COUNT", v[0], waited+4, waited+5)
}
