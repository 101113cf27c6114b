package cli

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"mirador/omis/linux/subject"
)

// TestMetricsOfSockets compares NET_SEND and NET_RECV with the clocks of a program that sends and
// receives on sockets, pipes and files, after each kind of call. Calls on pipes and files, and
// other calls, must not count.
func TestMetricsOfSockets(t *testing.T) {
	s := startServe(t, 0)
	p := subject.Start(t, exec.Command(subject.Compile(t, "sockets", "testdata/sockets.c")))
	p.Line() // it is ready
	s.must(t, "", "attach", strconv.Itoa(p.PID))
	s.mir(t, "sockets", `<instrreq activated="true" flush="true"><metric name="NET_SEND"/><metric name="NET_RECV"/></instrreq>`)
	var last [2]float64
	for _, c := range []struct {
		call, kind     string
		n              int
		send, received bool
		least          float64 // time for sending, in ms
	}{
		{"write", "tcp", 100, true, false, 0}, {"read", "tcp", 100, false, true, 0},
		{"send", "tcp", 100, true, false, 0}, {"recv", "tcp", 100, false, true, 0},
		{"write", "unix", 100, true, false, 0}, {"read", "unix", 100, false, true, 0},
		{"send", "unix", 100, true, false, 0}, {"recv", "unix", 100, false, true, 0},
		{"write", "pipe", 100, false, false, 0}, {"read", "pipe", 100, false, false, 0},
		{"write", "file", 100, false, false, 0}, {"read", "file", 100, false, false, 0},
		// These calls wait for 50 ms each, which counts for sending only.
		{"send", "full", 2, true, false, 100}, {"write", "full", 2, true, false, 100},
		{"recv", "full", 2, false, true, 0}, {"read", "full", 2, false, true, 0},
	} {
		var wall, cpu float64 // ns
		p.Tell("%s %s %d", c.call, c.kind, c.n)
		if _, err := fmt.Sscan(p.Line(), &wall, &cpu); err != nil {
			t.Fatal(err)
		}
		total := s.messages(t)
		sent, received := total[0]-last[0], total[1]-last[1]
		last = total
		within := func(name string, got float64, counts bool, least, most float64) {
			if counts && (got <= least*0.99 || got > most) || !counts && got != 0 {
				t.Errorf("%s of %d × %s on %s: %g ms, counts: %v, by the program's clock %g ms", name, c.n, c.call, c.kind, got, counts, most)
			}
		}
		within("NET_SEND", sent, c.send, c.least, wall/1e6)
		within("NET_RECV", received, c.received, 0, cpu/1e6)
	}
}

// messages returns the values of NET_SEND and NET_RECV, in ms.
func (s *served) messages(t *testing.T) (total [2]float64) {
	t.Helper()
	answer := s.mir(t, "sockets", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`)
	values := regexp.MustCompile(` value="([^"]*)"`).FindAllStringSubmatch(answer, -1)
	if len(values) != len(total) {
		t.Fatal(answer)
	}
	for i, v := range values {
		var err error
		if total[i], err = strconv.ParseFloat(v[1], 64); err != nil {
			t.Fatal(err)
		}
	}
	return total
}
