package cli

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var deliverKills = flag.Int("kills", 10, "how often TestDeliveredThroughKills kills the gateway")

// TestDeliveredThroughKills kills gateways that deliver counts to a file and to a server that
// comes and goes. Every number arrives, and the last count is what the program counted itself.
func TestDeliveredThroughKills(t *testing.T) {
	t.Parallel()
	remote := newAbsentServer(t)
	s := startServe(t, 0, "--deliver", "file:///", "--deliver", remote.url)
	c := startTally(t)
	before := c.says("stop")
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	path := filepath.Join(s.dir, "values")
	for _, uri := range []string{"file://" + path, remote.url + "/in"} {
		s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><measuring delivery="5" destination="`+uri+`"/><process id="*"/></instrreq>`)
	}
	c.says("go")
	for round := range *deliverKills {
		if round%2 == 0 {
			remote.begin(t)
		}
		time.Sleep(30 * time.Millisecond)
		remote.end()
		s.kill(t)
		s.await(t, s.begin(t))
	}
	total := c.says("stop") - before
	remote.begin(t)
	s.must(t, "", "probe", "rm", "probe-1", "probe-2")
	eventually(t, "the server has the last value", func() bool { return strings.HasSuffix(remote.text(), fmt.Sprintf("value=%q/>\n", strconv.Itoa(total))) })
	eventually(t, "the file has the last value", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(text), fmt.Sprintf("value=%q/>\n", strconv.Itoa(total)))
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	allThere(t, "the file", string(text))
	allThere(t, "the server", remote.text())
	s.must(t, "", "release", "tally")
}

// TestEndWhileTheServerIsAway ends a gateway whose documents cannot be delivered. It lets go of its
// processes as usual, and the next gateway delivers the documents.
func TestEndWhileTheServerIsAway(t *testing.T) {
	remote := newAbsentServer(t)
	s := startServe(t, 0, "--deliver", remote.url)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/><measuring delivery="5" destination="`+remote.url+`/in"/><process id="*"/></instrreq>`)
	eventually(t, "a document cannot be delivered", func() bool { return strings.Contains(s.logged(), "measurements cannot be delivered, and wait") })
	s.end(t)
	if state := s.cmd.ProcessState; !state.Success() {
		t.Errorf("the gateway ended with %v\n%s", state, s.logged())
	}
	s.await(t, s.begin(t))
	remote.begin(t)
	eventually(t, "the documents arrive", func() bool { return strings.Contains(remote.text(), `number="1"`) })
}

var documentLine = regexp.MustCompile(`number="(\d+)" lost="0"\?><measurement(?: processId="p_1" value="(\d+)"/)?>`)

// allThere checks that no number is missing, and that repeated ones have the same value.
func allThere(t *testing.T, what, text string) {
	t.Helper()
	known := make(map[int]string)
	for _, m := range documentLine.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := known[n]; ok && v != m[2] {
			t.Errorf("%s: number %d has the values %q and %q", what, n, v, m[2])
		}
		known[n] = m[2]
	}
	for n := range len(known) {
		if _, ok := known[n+1]; !ok {
			t.Fatalf("%s: number %d of %d is missing", what, n+1, len(known))
		}
	}
	if lines := strings.Count(text, "\n"); lines < len(known) || len(known) < 20 {
		t.Errorf("%s has %d documents, %d different ones", what, lines, len(known))
	}
	t.Logf("%s: %d documents, %d of them twice", what, len(known), strings.Count(text, "\n")-len(known))
}

// absentServer is a server that is there at times. It writes documents as files have them.
type absentServer struct {
	url, address string

	mu       sync.Mutex
	received strings.Builder
	server   *http.Server
}

func newAbsentServer(t *testing.T) *absentServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &absentServer{address: l.Addr().String(), url: "http://" + l.Addr().String()}
	l.Close()
	t.Cleanup(s.end)
	return s
}

func (s *absentServer) begin(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.server = &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway was killed
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&s.received, "<?mirador number=%q lost=%q?>%s\n", r.Header.Get("Mirador-Number"), r.Header.Get("Mirador-Lost"), body)
	})}
	go s.server.Serve(l)
}

func (s *absentServer) end() {
	if s.server != nil {
		s.server.Close()
		s.server = nil
	}
}

func (s *absentServer) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received.String()
}
