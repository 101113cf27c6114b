package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serveHastily starts a server with short time limits on a Unix socket and on TCP with TLS, and returns
// functions that connect to each.
func serveHastily(t *testing.T) map[string]func() (net.Conn, error) {
	t.Helper()
	const headers, bodies = 100 * time.Millisecond, 300 * time.Millisecond
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	socket := filepath.Join(t.TempDir(), "s.sock")
	unix, err := ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := ListenTCP("127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(one())
	*s.times = times{headers, bodies}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, grace, unix, tcp) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return map[string]func() (net.Conn, error){
		"unix": func() (net.Conn, error) { return net.Dial("unix", socket) },
		"tls": func() (net.Conn, error) {
			return tls.Dial("tcp", tcp.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		},
	}
}

// TestSlowRequests checks that the server answers a request that arrives too slowly with the reason.
func TestSlowRequests(t *testing.T) {
	const whole = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	const begun = "POST /mir HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n<snap"
	for transport, dial := range serveHastily(t) {
		for name, c := range map[string]struct {
			sent   string
			status []int
			words  string
		}{
			"header":              {"GET /healthz HTTP/1.1\r\nHos", []int{408}, "the header of the request did not arrive whole in time"},
			"header of a second":  {whole + "GET /heal", []int{200, 408}, "the header of the request did not arrive whole in time"},
			"whole lines":         {"GET /healthz HTTP/1.1\r\nHost: x\r\n", []int{408}, "the header of the request did not arrive whole in time"},
			"nothing of a second": {whole, []int{200}, ""},
		} {
			t.Run(transport+", "+name, func(t *testing.T) { converse(t, dial, c.sent, c.words, c.status...) })
		}
		if transport == "unix" { // TLS needs a handshake, and a body needs a known caller
			t.Run("nothing at all", func(t *testing.T) { converse(t, dial, "", "") })
			t.Run("body", func(t *testing.T) {
				converse(t, dial, begun, "<errors><error>line 1, column 1: the request did not arrive whole within 300ms", 408)
			})
		}
	}
}

// converse sends a text and reads the answers until the server closes the connection.
func converse(t *testing.T, dial func() (net.Conn, error), sent, words string, want ...int) {
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if len(want) == 1 && want[0] == 200 { // the server keeps the connection open
		_ = conn.SetReadDeadline(time.Now().Add(250 * time.Millisecond))
	}
	for i, part := range strings.SplitAfter(sent, "\r\n\r\n") {
		if i > 0 {
			time.Sleep(20 * time.Millisecond) // send the second header after the first answer
		}
		if _, err := io.WriteString(conn, part); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewReader(conn)
	for _, status := range want {
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != status {
			t.Errorf("status %d, want %d: %s, %v", reply.StatusCode, status, body, err)
		}
		if status == http.StatusRequestTimeout && (!strings.Contains(string(body), words) || !reply.Close) {
			t.Errorf("%s, close %v", body, reply.Close)
		}
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("unexpected data after the answers: %q", rest)
	}
}
