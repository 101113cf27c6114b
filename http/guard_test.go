package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/mir"
	"mirador/probes/deliver"
)

// few has limits that a test reaches quickly.
var few = Limits{Connections: 8, Others: 6, User: 4, Streams: 8, UserStreams: 2, Unknown: 300 * time.Millisecond}

// fewConnections has the addresses of a server with few connections: a Unix socket that all users
// may open, and TCP.
type fewConnections struct{ socket, addr string }

func serveFew(t *testing.T, b Backend) fewConnections {
	t.Helper()
	return serveLimited(t, b, few)
}

func serveLimited(t *testing.T, b Backend, limits Limits) fewConnections {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	f := fewConnections{socket: filepath.Join(dir, "s.sock")}
	local, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	f.addr = remote.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		users := newGuard(local, limits, true)
		users.peer = namedPeer
		ended <- newTestServer(b).Serve(ctx, time.Second, users, newGuard(remote, limits, true))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// dialAs connects from a socket whose name ends with a uid. The server takes it for the uid of the
// peer (namedPeer).
func dialAs(t *testing.T, socket string, uid int) net.Conn {
	t.Helper()
	name := filepath.Join(t.TempDir(), strconv.Itoa(uid))
	conn, err := net.DialUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func namedPeer(conn *net.UnixConn) (int, error) {
	return strconv.Atoi(filepath.Base(conn.RemoteAddr().String()))
}

// getOn sends a request on a connection and returns the status and the body. The status is 0 if the
// server has closed the connection.
func getOn(t *testing.T, conn net.Conn, path string, header ...string) (int, string) {
	t.Helper()
	return getHost(t, conn, path, "localhost", header...)
}

// getHost does the same with a host name of the gateway.
func getHost(t *testing.T, conn net.Conn, path, host string, header ...string) (int, string) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, host, strings.Join(header, ""))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// TestConnectionsOfAUser checks that a user with the maximum number of connections does not keep other
// users from connecting.
func TestConnectionsOfAUser(t *testing.T) {
	one, two, three := os.Geteuid()+1, os.Geteuid()+2, os.Geteuid()+3
	f := serveFew(t, &scripted{})
	for i := range few.User {
		if status, body := getOn(t, dialAs(t, f.socket, one), "/healthz"); status != http.StatusOK {
			t.Fatalf("connection %d: %d %s", i, status, body)
		}
	}
	if status, body := getOn(t, dialAs(t, f.socket, one), "/healthz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "may have no more") {
		t.Errorf("one more: %d %s", status, body)
	}
	for range few.Others - few.User {
		if status, body := getOn(t, dialAs(t, f.socket, two), "/healthz"); status != http.StatusOK {
			t.Errorf("another user: %d %s", status, body)
		}
	}
	if status, _ := getOn(t, dialAs(t, f.socket, three), "/healthz"); status != http.StatusServiceUnavailable {
		t.Errorf("a third user takes root's share: %d", status)
	}
	var last net.Conn
	for range few.Connections - few.Others {
		last = dialAs(t, f.socket, os.Geteuid())
		if status, body := getOn(t, last, "/apps"); status != http.StatusOK {
			t.Errorf("the gateway's user: %d %s", status, body)
		}
	}
	if status, _ := getOn(t, dialAs(t, f.socket, os.Geteuid()), "/apps"); status != http.StatusServiceUnavailable {
		t.Errorf("a connection beyond the limit: %d", status)
	}
	last.Close()
	deadline := time.Now().Add(10 * time.Second)
	for status := 0; status != http.StatusOK; {
		if status, _ = getOn(t, dialAs(t, f.socket, os.Geteuid()), "/apps"); time.Now().After(deadline) {
			t.Fatal("a closed connection still counts")
		}
	}
}

// TestConnectionsOfStrangers checks that the server closes the oldest TCP connections of strangers if
// there are too many, that callers with the token can connect nevertheless, and that their connections
// stay open.
func TestConnectionsOfStrangers(t *testing.T) {
	limits := few
	limits.Unknown = time.Hour // do not close silent connections
	f := serveLimited(t, &scripted{}, limits)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	const shown = "Authorization: Bearer " + secret + "\r\n"
	mine := dial()
	if status, body := getOn(t, mine, "/apps", shown); status != http.StatusOK {
		t.Fatalf("with the token: %d %s", status, body)
	}
	var strangers []net.Conn
	for i := range 5 * few.Connections {
		strangers = append(strangers, dial())
		if status, body := getOn(t, strangers[i], "/healthz"); status != http.StatusOK {
			t.Fatalf("stranger %d: %d %s", i, status, body)
		}
	}
	newest := len(strangers) - (few.Connections - 1) // mine is one of the open connections
	for i, conn := range strangers[:newest] {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("stranger %d of %d is still connected: %v", i, len(strangers), err)
		}
	}
	for i, conn := range strangers[newest:] {
		if status, body := getOn(t, conn, "/healthz"); status != http.StatusOK {
			t.Errorf("stranger %d of the newest: %d %s", i, status, body)
		}
	}
	if status, body := getOn(t, dial(), "/apps", shown); status != http.StatusOK {
		t.Errorf("a new connection with the token: %d %s", status, body)
	}
	if status, body := getOn(t, mine, "/apps", shown); status != http.StatusOK {
		t.Errorf("the connection that showed the token: %d %s", status, body)
	}
	if status, body := getOn(t, dialAs(t, f.socket, os.Geteuid()), "/apps"); status != http.StatusOK {
		t.Errorf("the Unix socket: %d %s", status, body)
	}
}

// TestConnectionsOfAnotherUserOverTCP opens, as one user of the machine, more connections than
// there may be. The connection that another user opened earlier stays.
func TestConnectionsOfAnotherUserOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	owners := make(chan int, 1)
	g := newGuard(l, few, true)
	g.owner = func(*net.TCPConn) (int, error) { return <-owners, nil }
	defer g.Close()
	open := func(uid int) (server, client net.Conn) {
		owners <- uid
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err = g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(); server.Close() })
		return server, client
	}
	_, mine := open(1000)
	var last net.Conn
	for range 5 * few.Connections {
		_, last = open(1001)
	}
	for name, conn := range map[string]net.Conn{"another user's": mine, "the last": last} {
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection is closed: %v", name, err)
		}
	}
	if g.open != few.Connections || len(g.unknown) != 2 || g.unknown[1000].Len() != 1 {
		t.Errorf("%d connections of %d users", g.open, len(g.unknown))
	}
}

// TestSilentStrangers checks that the server closes a silent connection, unless it has shown the token.
func TestSilentStrangers(t *testing.T) {
	f := serveFew(t, &scripted{})
	isClosed := func(header ...string) bool {
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if status, body := getOn(t, conn, "/healthz", header...); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		conn.SetReadDeadline(time.Now().Add(3 * few.Unknown))
		_, err = conn.Read(make([]byte, 1))
		return err == io.EOF
	}
	if !isClosed() {
		t.Error("the connection of a stranger stays open")
	}
	if isClosed("Authorization: Bearer " + secret + "\r\n") {
		t.Error("the connection of a caller who showed the token was closed")
	}
}

func TestDefaultLimits(t *testing.T) {
	l := DefaultLimits()
	if l.User < 1 || l.User > l.Others || l.Others >= l.Connections || l.UserStreams < 1 || l.UserStreams >= l.Streams || l.Connections > mostConnections {
		t.Errorf("%+v", l)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	c := streams{limits: few, byUser: make(map[int]int)}
	user, other := &Caller{Name: "uid 1000", UID: 1000}, &Caller{Name: "uid 1001", UID: 1001}
	var ends []func()
	open := func(caller *Caller) error {
		done, err := c.take(caller)
		if err == nil {
			ends = append(ends, done)
		}
		return err
	}
	for range few.UserStreams {
		if err := open(user); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(user); err == nil || faultOf(err).Status != http.StatusTooManyRequests {
		t.Errorf("one more: %v", err)
	}
	if err := open(other); err != nil {
		t.Errorf("another user: %v", err)
	}
	for range few.Streams - few.UserStreams - 1 {
		if err := open(root); err != nil {
			t.Errorf("root: %v", err)
		}
	}
	if err := open(root); err == nil || faultOf(err).Status != http.StatusServiceUnavailable {
		t.Errorf("a stream beyond the limit: %v", err)
	}
	for _, end := range ends {
		end()
	}
	if c.all != 0 || len(c.byUser) != 0 {
		t.Errorf("%d streams are left, %v", c.all, c.byUser)
	}
}

// TestStreamEndsWhenTheProcessBecomesAnotherUsers checks that a stream ends, with the reason, when a
// process of the application changes its user.
func TestStreamEndsWhenTheProcessBecomesAnotherUsers(t *testing.T) {
	const his = 65534
	const pid = 100
	documents := make(chan deliver.Event)
	b := &scripted{
		apps:    []App{{Name: "his", Owner: his, Processes: []Process{{Token: "p_1", PID: pid}}}},
		owners:  map[int]int{pid: his},
		probes:  []Probe{{ID: "probe-1", App: "his"}},
		streams: map[string]chan deliver.Event{"probe-1": documents},
	}
	s := newTestServer(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(withCaller(r.Context(), peer(his, 0))))
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/probes/probe-1/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	until := func(words string) bool {
		for lines.Scan() {
			if strings.Contains(lines.Text(), words) {
				return true
			}
		}
		return false
	}
	documents <- deliver.Event{Document: &mir.Measurement{}}
	if !until("event: measurement") {
		t.Fatal("the stream has no document although the user owns the process")
	}
	b.mu.Lock()
	b.owners[pid] = 0
	b.mu.Unlock()
	documents <- deliver.Event{Document: &mir.Measurement{}}
	for lines.Scan() {
		if strings.Contains(lines.Text(), "event: measurement") {
			t.Fatal("the stream has a document after the process became root's")
		}
		if strings.Contains(lines.Text(), "belongs to another user now") {
			return
		}
	}
	t.Error("the stream ended without a reason")
}

// TestStreamBeyondTheLimitIsRefused checks that the route of streams applies Limits.UserStreams.
func TestStreamBeyondTheLimitIsRefused(t *testing.T) {
	b := one()
	b.apps[0].Owner = 1000
	b.streams = map[string]chan deliver.Event{"probe-1": make(chan deliver.Event)}
	s := newTestServer(b)
	s.streams.limits = few
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(withCaller(r.Context(), owner)))
	}))
	defer server.Close()
	for i := range few.UserStreams + 1 {
		resp, err := server.Client().Get(server.URL + "/probes/probe-1/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := http.StatusOK
		if i == few.UserStreams {
			want = http.StatusTooManyRequests
		}
		if resp.StatusCode != want {
			t.Errorf("stream %d: %d", i, resp.StatusCode)
		}
	}
}
