package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// times are limits for the arrival of the parts of a request.
type times struct{ header, body time.Duration }

// slowHeader detects that the header of a request does not arrive in time, and answers.
// net/http closes such a connection without an answer.
type slowHeader struct {
	out      net.Conn     // destination of the answer: the connection, or TLS over it; set before the first Read
	busy     atomic.Bool  // while a handler runs
	received atomic.Int64 // bytes since the last handler ended
	answered atomic.Bool
}

// saw records the result of a Read of the connection. If the time is over and a part of a
// header has arrived, it sends the answer before it returns.
func (h *slowHeader) saw(n int, err error) {
	received := h.received.Add(int64(n))
	if !errors.Is(err, os.ErrDeadlineExceeded) || received == 0 || h.busy.Load() || h.out == nil {
		return
	}
	h.received.Store(0)
	// During its handshake, a TLS connection accepts no data before this Read returns. So
	// another goroutine writes, and the Read waits for it for a limited time.
	const patience = 200 * time.Millisecond
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if secure, ok := h.out.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol == "h2" {
			return // answers of HTTP/2 have another format
		}
		_ = h.out.SetWriteDeadline(time.Now().Add(patience))
		_, _ = h.out.Write(tooSlow()) // an error means that the caller is gone
	}()
	select {
	case <-sent:
	case <-time.After(patience):
	}
	h.answered.Store(true)
}

// tooSlow returns the complete answer to a header that did not arrive.
func tooSlow() []byte {
	body, err := json.Marshal(problem{
		Type: "about:blank", Title: http.StatusText(http.StatusRequestTimeout), Status: http.StatusRequestTimeout,
		Detail: "the header of the request did not arrive whole in time: send it faster",
	})
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	return fmt.Appendf(nil, "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

// Read reads from the connection.
func (c *guarded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.header.saw(n, err)
	return n, err
}

// Write writes to the connection. After the answer to a slow header it writes nothing more,
// because net/http would add an answer to the incomplete header.
func (c *guarded) Write(b []byte) (int, error) {
	if c.header.answered.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// headerKey is the key of the slowHeader of a request's connection.
type headerKey struct{}

// handling records that a handler runs for a request, until ended is called.
func handling(ctx context.Context) (ended func()) {
	h, ok := ctx.Value(headerKey{}).(*slowHeader)
	if !ok {
		return func() {}
	}
	h.busy.Store(true)
	return func() {
		h.received.Store(0)
		h.busy.Store(false)
	}
}
