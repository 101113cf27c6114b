package cli

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// netMetrics are the metrics of Table 1 of MIR's report about the network.
var netMetrics = []string{
	"NET_SEND", "NET_RECV", "NET_BYTES_SEND", "NET_BYTES_RECV", "NET_BLOCKED_SEND", "NET_BLOCKED_RECV", "NET_INIT", "NET_END",
}

// netValues are values of netMetrics, times in ms.
type netValues struct{ send, recv, bytesSend, bytesRecv, blockedSend, blockedRecv, init, end float64 }

// TestMetricsOfSockets compares the metrics of the network with the clocks and results of a
// program that sends and receives on sockets, pipes and files, after each kind of call. Calls
// on pipes and files, and other calls, must not count.
func TestMetricsOfSockets(t *testing.T) {
	s := startServe(t, 0)
	p := subject.Start(t, exec.Command(subject.Compile(t, "sockets", "testdata/sockets.c")))
	p.Line() // it is ready
	s.must(t, "", "attach", strconv.Itoa(p.PID))
	s.mir(t, "sockets", `<instrreq activated="true" flush="true"><metric name="`+strings.Join(netMetrics, `"/><metric name="`)+`"/></instrreq>`)
	last := s.messages(t)
	for _, c := range []struct {
		call, kind     string
		n              int
		send, received bool
		waited         float64 // ms; less if the kernel waits a little too short
	}{
		{"write", "tcp", 100, true, false, 0}, {"read", "tcp", 100, false, true, 0},
		{"sendmmsg", "tcp", 100, true, false, 0}, {"recvmmsg", "tcp", 100, false, true, 0},
		{"send", "tcp", 100, true, false, 0}, {"recv", "tcp", 100, false, true, 0},
		{"sendmmsg", "unix", 100, true, false, 0}, {"recvmmsg", "unix", 100, false, true, 0},
		{"write", "unix", 100, true, false, 0}, {"read", "unix", 100, false, true, 0},
		{"send", "unix", 100, true, false, 0}, {"recv", "unix", 100, false, true, 0},
		{"write", "pipe", 100, false, false, 0}, {"read", "pipe", 100, false, false, 0},
		{"write", "file", 100, false, false, 0}, {"read", "file", 100, false, false, 0},
		// These calls wait for 50 ms each.
		{"send", "full", 2, true, false, 100}, {"write", "full", 2, true, false, 100},
		{"recv", "full", 2, false, true, 100}, {"read", "full", 2, false, true, 100},
		{"connect", "-", 20, false, false, 0}, {"end", "-", 20, false, false, 0},
	} {
		var wall, cpu, sum float64 // ns, ns, bytes
		p.Tell("%s %s %d", c.call, c.kind, c.n)
		if _, err := fmt.Sscan(p.Line(), &wall, &cpu, &sum); err != nil {
			t.Fatal(err)
		}
		now := s.messages(t)
		within := func(name string, got float64, counts bool, least, most float64) {
			t.Helper()
			if counts && (got < least*0.99 || got > most) || !counts && got != 0 {
				t.Errorf("%s of %d × %s on %s: %g, counts: %v, by the program %g to %g", name, c.n, c.call, c.kind, got, counts, least, most)
			}
		}
		const late = 0.2 // ms: the clocks are read one after the other
		idle := (wall-cpu)/1e6 + late
		within("NET_SEND", now.send-last.send, c.send, max(c.waited, 1e-6), wall/1e6)
		within("NET_RECV", now.recv-last.recv, c.received, 1e-6, cpu/1e6)
		within("NET_BYTES_SEND", now.bytesSend-last.bytesSend, c.send, sum/0.99, sum)
		within("NET_BYTES_RECV", now.bytesRecv-last.bytesRecv, c.received, sum/0.99, sum)
		within("NET_BLOCKED_SEND", now.blockedSend-last.blockedSend, c.send, c.waited, idle)
		within("NET_BLOCKED_RECV", now.blockedRecv-last.blockedRecv, c.received, c.waited, idle)
		if c.call != "end" {
			within("NET_INIT", now.init-last.init, c.call == "connect", 1e-6, wall/1e6)
		}
		if c.call != "connect" {
			within("NET_END", now.end-last.end, c.call == "end", 1e-6, wall/1e6)
		}
		if c.call == "recv" && c.kind == "tcp" {
			if sent := sentByTCP(t, p.PID); now.bytesSend != sent {
				t.Errorf("NET_BYTES_SEND %g, ss shows %g", now.bytesSend, sent)
			}
		}
		last = now
	}
}

// sentByTCP returns how many bytes the TCP sockets of a process have sent, as ss shows it.
func sentByTCP(t *testing.T, pid int) (sum float64) {
	t.Helper()
	out := tells(t, "ss", "-tinpHO")
	for line := range strings.Lines(out) {
		found := regexp.MustCompile(`bytes_sent:(\d+)`).FindStringSubmatch(line)
		if found != nil && strings.Contains(line, fmt.Sprintf("pid=%d,", pid)) {
			n, _ := strconv.ParseFloat(found[1], 64)
			sum += n
		}
	}
	return sum
}

// messages returns the values of the metrics of the network.
func (s *served) messages(t *testing.T) (v netValues) {
	t.Helper()
	into := []*float64{&v.send, &v.recv, &v.bytesSend, &v.bytesRecv, &v.blockedSend, &v.blockedRecv, &v.init, &v.end}
	for i, n := range s.values(t, "sockets", "probe-1", len(into)) {
		*into[i] = n
	}
	return v
}

// values returns the n values of a probe in the order of its metrics.
func (s *served) values(t *testing.T, app, probe string, n int) []float64 {
	t.Helper()
	answer := s.mir(t, app, `<ctrlreq action="VALUE"><probe id="`+probe+`"/></ctrlreq>`)
	texts := regexp.MustCompile(` value="([^"]*)"`).FindAllStringSubmatch(answer, -1)
	if len(texts) != n {
		t.Fatal(answer)
	}
	values := make([]float64, n)
	for i, text := range texts {
		var err error
		if values[i], err = strconv.ParseFloat(text[1], 64); err != nil {
			t.Fatal(err)
		}
	}
	return values
}
