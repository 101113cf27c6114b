package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirador/mir"
	"mirador/omis"
	"mirador/probes/deliver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server on a Unix socket and on TCP.
type running struct {
	local, remote *http.Client
	url           string
	stop          func() error
}

// grace is the time that the server waits for running requests when it shuts down.
const grace = time.Minute

func run(t *testing.T, b Backend) *running {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "dir", "s.sock")
	unix, err := ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := ListenTCP("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- newTestServer(b).Serve(ctx, grace, unix, tcp) }()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	r := &running{
		local:  &http.Client{Transport: &http.Transport{DialContext: dial}},
		remote: &http.Client{Transport: &http.Transport{}}, url: "http://" + tcp.Addr().String(),
	}
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		r.local.CloseIdleConnections()
		r.remote.CloseIdleConnections()
	})
	return r
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestTheSocketKnowsItsPeer(t *testing.T) {
	r := run(t, one())
	if status, body := get(t, r.local, "http://x/apps"); status != 200 || !strings.Contains(body, "mmul") {
		t.Errorf("over the socket: %d %s", status, body)
	}
	if status, _ := get(t, r.remote, r.url+"/apps"); status != 401 {
		t.Errorf("over TCP without a token: %d", status)
	}
}

func TestPeers(t *testing.T) {
	for _, c := range []struct {
		uid, server int
		all         bool
	}{{0, 1000, true}, {1000, 1000, true}, {1001, 1000, false}, {1001, 0, false}} {
		if p := peer(c.uid, c.server); p.All != c.all || !p.MayTouch(c.uid) || p.MayTouch(4711) != c.all {
			t.Errorf("peer(%d, %d) = %+v", c.uid, c.server, p)
		}
	}
}

func TestStreamsOfProbes(t *testing.T) {
	b := one()
	c := make(chan deliver.Event, 2)
	b.streams = map[string]chan deliver.Event{"probe-1": c}
	r := run(t, b)
	resp, err := r.local.Get("http://x/probes/probe-1/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, e := range []struct {
		lost int
		want []string
	}{{0, nil}, {5, []string{"event: lost", "data: 5", ""}}, {deliver.Unknown, []string{"event: lost", "data: unknown", ""}}} {
		c <- deliver.Event{ID: uint64(42 + e.lost), Lost: e.lost, Document: &mir.Measurement{Value: "1"}}
		want := append(e.want, "event: measurement", fmt.Sprint("id: ", 42+e.lost), `data: <measurement value="1"/>`, "")
		for _, w := range want {
			if !lines.Scan() || lines.Text() != w {
				t.Fatalf("line %q, want %q", lines.Text(), w)
			}
		}
	}
	close(c) // the probe was removed
	if lines.Scan() {
		t.Errorf("after the end: %q", lines.Text())
	}
	for _, from := range []string{"?after=x", "?after=0"} {
		if status, body := get(t, r.local, "http://x/probes/probe-1/stream"+from); status != 400 || !strings.Contains(body, "is no id of an event") {
			t.Errorf("a stream %s: %d %s", from, status, body)
		}
	}
	if after := b.after; after != 0 {
		t.Errorf("the stream began after %d", after)
	}
	get(t, r.local, "http://x/probes/probe-1/stream?after=41") // the channel is closed
	if b.after != 41 {
		t.Errorf("the stream began after %d, want 41", b.after)
	}
	if status, _ := get(t, r.local, "http://x/probes/nix/stream"); status != 404 {
		t.Errorf("an unknown probe: %d", status)
	}
}

// TestHeadOfStream checks that the answer to HEAD does not wait for the end of the stream.
func TestHeadOfStream(t *testing.T) {
	b := one()
	b.streams = map[string]chan deliver.Event{"probe-1": make(chan deliver.Event)}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("HEAD", "/probes/probe-1/stream", nil)
	newTestServer(b).ServeHTTP(deadlined{w}, r.WithContext(withCaller(r.Context(), root)))
	expect(t, w, 200)
}

// deadlined is a recorder that accepts a read deadline, like a connection.
type deadlined struct{ *httptest.ResponseRecorder }

func (deadlined) SetReadDeadline(time.Time) error { return nil }

func TestShutdownEndsStreams(t *testing.T) {
	b := one()
	b.replies = make(chan StreamedReply, 1)
	r := run(t, b)
	resp, err := r.local.Get("http://x/omis/tools/mine/replies?format=text")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b.replies <- StreamedReply{ID: 42, Reply: omis.Reply{{{Status: omis.CSRTriggered}}}}
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || line != "event: reply\n" {
		t.Errorf("%q, %v", line, err)
	}
	start := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > grace/2 {
		t.Errorf("the shutdown waited %v for a stream", took)
	}
}

// TestResumeStream checks that the events of a stream have the ids of the replies, and that a reader can
// continue after an event that it names in the header of server-sent events or in the query.
func TestResumeStream(t *testing.T) {
	b := one()
	r := run(t, b)
	read := func(query, last string) string {
		b.replies = make(chan StreamedReply, 1) // a new one, because the stream before may not have ended yet
		req, err := http.NewRequest("GET", "http://x/omis/tools/mine/replies"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := r.local.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			return string(text)
		}
		b.replies <- StreamedReply{ID: 42, Reply: omis.Reply{{{Status: omis.CSRTriggered}}}}
		in := bufio.NewReader(resp.Body)
		event, _ := in.ReadString('\n')
		id, _ := in.ReadString('\n')
		return fmt.Sprint(event, id, b.after)
	}
	for _, c := range []struct{ query, last, want string }{
		{"", "", "event: reply\nid: 42\n0"},
		{"", "41", "event: reply\nid: 42\n41"},
		{"?after=7", "", "event: reply\nid: 42\n7"},
		{"?after=7", "8", "event: reply\nid: 42\n8"},
	} {
		if got := read(c.query, c.last); got != c.want {
			t.Errorf("%s, Last-Event-ID %s: %q, want %q", c.query, c.last, got, c.want)
		}
	}
	for _, bad := range []string{"x", "-1", "0", "18446744073709551615"} {
		if got := read("", bad); !strings.Contains(got, "no id of an event") {
			t.Errorf("Last-Event-ID %s: %s", bad, got)
		}
	}
}

func TestListening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	first, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another gateway") {
		t.Errorf("a second gateway: %v", err)
	}
	first.(*guard).Listener.(*net.UnixListener).SetUnlinkOnClose(false) // as after SIGKILL
	first.Close()
	second, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(file); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if text, _ := os.ReadFile(file); string(text) != "x" {
		t.Error("ListenUnix changed a file that is no socket")
	}
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "nonsense"} {
		if l, err := ListenTCP(addr, nil); err == nil {
			l.Close()
			t.Errorf("listens on %s without TLS", addr)
		}
	}
}

func TestTokenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	made, err := LoadToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadToken(dir)
	if err != nil || again != made || !made.matches(made.secret) || len(made.secret) != 64 {
		t.Errorf("made %+v, then %+v, %v", made, again, err)
	}
	info, _ := os.Stat(made.Path())
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 {
		t.Errorf("the directory has the files %q", left)
	}
	if err := os.Chmod(made.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadToken(dir); err == nil || !strings.Contains(err.Error(), "others may read it") {
		t.Errorf("a token that others may read: %v", err)
	}
	if (Token{}).matches("") {
		t.Error("an empty token matches the empty string")
	}
}

// TestSocketOfKilledGateway checks that a gateway starts while a child of the killed one still
// has the socket open, and not while another gateway listens.
func TestSocketOfKilledGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another gateway listens") {
		t.Errorf("beside another gateway: %v", err)
	}
	time.AfterFunc(lingers/4, func() { left.Close() })
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
