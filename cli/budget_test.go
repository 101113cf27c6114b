package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	gateway "mirador/http"
	"mirador/omis/linux/subject"
)

// rates is a process of testdata/rates.c.
type rates struct {
	t *testing.T
	*subject.Subject
}

func startRates(t *testing.T) rates {
	t.Helper()
	return rates{t, subject.Start(t, exec.Command(subject.Compile(t, "rates", "testdata/rates.c")))}
}

// calls returns how often the hot function was called.
func (r rates) calls() (hot int64) {
	r.t.Helper()
	r.Tell("")
	if _, err := fmt.Sscan(r.Line(), &hot); err != nil {
		r.t.Fatal(err)
	}
	return hot
}

// used returns the processor time that the process has used. On a busy machine this is less than
// the time that has passed.
func (r rates) used() time.Duration {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID))
	if err != nil {
		r.t.Fatal(err)
	}
	const userTime, systemTime, tick = 11, 12, 10 * time.Millisecond // fields after the name
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.Atoi(fields[userTime])
	system, again := strconv.Atoi(fields[systemTime])
	if err := errors.Join(err, again); err != nil {
		r.t.Fatal(err)
	}
	return time.Duration(user+system) * tick
}

// rate returns the calls of the hot function in a second of processor time.
func (r rates) rate() float64 {
	r.t.Helper()
	const watched = 200 * time.Millisecond
	before, began := r.calls(), r.used()
	eventually(r.t, "the program runs", func() bool { return r.used() >= began+watched })
	return float64(r.calls()-before) / (r.used() - began).Seconds()
}

func (s *served) probe(t *testing.T, id string) (p gateway.Probe) {
	t.Helper()
	if err := json.Unmarshal([]byte(wants(t, "--unix-socket", s.socket, "http://mirador/probes/"+id)), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBudgetOfHotAndColdFunction checks a probe on a function that is called ten million times a
// second: it exceeds its budget and is deactivated, and the program then runs at its former speed.
// A probe on a function that is rarely called stays active.
func TestBudgetOfHotAndColdFunction(t *testing.T) {
	s := startServe(t, 0, "--placements", "kernel,trap")
	r := startRates(t)
	s.must(t, "", "attach", fmt.Sprint(r.PID))
	bare := r.rate()
	const request = `<instrreq activated="true" flush="true" xmlns:g="urn:mirador:gateway" g:budget="2%%"><codeRegion from="rates:%s"/><metric name="COUNT"/></instrreq>`
	s.must(t, fmt.Sprintf(request, "cold"), "post", "-")
	s.must(t, fmt.Sprintf(request, "hot"), "post", "-")
	began := r.used()
	probed := r.rate()
	var hot gateway.Probe
	eventually(t, "the hot function's probe is deactivated", func() bool {
		hot = s.probe(t, "probe-2")
		return hot.State == "inactive"
	})
	took := r.used() - began
	t.Logf("%.3g calls a second, %.3g with the probe; deactivated after %v: %s", bare, probed, took, hot.Notice)
	if took > 2*time.Second {
		t.Errorf("the hot function's probe was deactivated after %v", took)
	}
	if !strings.Contains(hot.Notice, "budget of 2%") || hot.Cost == nil || hot.Cost.Budget != 0.02 || hot.Cost.Hits == 0 {
		t.Errorf("the hot function's probe is %+v, spent %+v", hot, hot.Cost)
	}
	if cost := hot.Cost; cost.Share < 0.3 || cost.Dilation < 1.4 || cost.PerHit < 50 {
		t.Errorf("of a program that is slower by %.1f times, it took %+v", bare/probed, cost)
	}
	eventually(t, "the program runs at its former speed", func() bool { return r.rate() > 0.7*bare })
	cold := s.probe(t, "probe-1")
	if cold.State != "active" || cold.Notice != "" || cold.Cost == nil || cold.Cost.Share > 0.02 || cold.Cost.Hits == 0 {
		t.Errorf("the cold function's probe is %+v, spent %+v", cold, cold.Cost)
	}
	if got := s.must(t, `<ctrlreq action="ACTIVATE"><probe id="probe-2"/></ctrlreq>`, "post", "-"); strings.Contains(got, "notice") {
		t.Errorf("the reply to ACTIVATE is %s", got)
	}
	s.must(t, `<ctrlreq action="REMOVE"><probe id="probe-2"/></ctrlreq>`, "post", "-")
}
