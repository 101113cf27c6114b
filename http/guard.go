package gateway

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"mirador/http/identity"
)

// guard is a listener that bounds its connections. On the Unix socket each user has
// a limit, since the kernel says who connects. On TCP a connection is unknown until
// a request on it has shown a token or a certificate; when there is no room for a
// new connection, the oldest unknown one is closed. So whoever holds a token gets
// in, however many connections strangers hold.
//
// Accept is called by one goroutine, all else by any.
type guard struct {
	net.Listener
	limits Limits
	plain  bool // a refusal can be written before the connection is closed
	peer   func(*net.UnixConn) (int, error)

	mu      sync.Mutex
	open    int
	others  int
	byUser  map[int]int
	unknown list.List // of *guarded, the oldest first
}

func newGuard(l net.Listener, limits Limits, plain bool) *guard {
	return &guard{Listener: l, limits: limits, plain: plain, peer: identity.OfPeer, byUser: make(map[int]int)}
}

// guarded is a connection that a guard counts.
type guarded struct {
	net.Conn
	guard *guard
	peer  *Caller // nil where the connection does not tell it
	once  sync.Once

	header slowHeader

	// Guarded by guard.mu:
	place  *list.Element // in guard.unknown; nil when the caller is known
	wanted time.Time     // the read deadline that the server has set
}

// Accept returns the next connection that there is room for.
func (g *guard) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, why := g.admit(conn, identifyPeer(conn, g.peer))
		if why == "" {
			return c, nil
		}
		g.refuse(conn, why)
	}
}

// admit counts a connection, or says why there is no room for it.
func (g *guard) admit(conn net.Conn, peer *Caller) (c *guarded, refusal string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if peer != nil && !peer.All {
		switch n := g.byUser[peer.UID]; {
		case n >= g.limits.User:
			return nil, fmt.Sprintf("%s has %d connections to the gateway, and may have no more", peer.Name, n)
		case g.others >= g.limits.Others:
			return nil, fmt.Sprintf("the gateway has %d connections of users like you, and serves no more at a time", g.others)
		}
	}
	if g.open >= g.limits.Connections && !g.evict() {
		return nil, fmt.Sprintf("the gateway has %d connections, and serves no more at a time", g.open)
	}
	g.open++
	c = &guarded{Conn: conn, guard: g, peer: peer}
	switch {
	case peer == nil:
		c.place = g.unknown.PushBack(c)
	case !peer.All:
		g.others++
		g.byUser[peer.UID]++
	}
	return c, ""
}

// evict closes the oldest connection of which nobody knows whose it is. The caller
// holds mu.
func (g *guard) evict() bool {
	first := g.unknown.Front()
	if first == nil {
		return false
	}
	c := first.Value.(*guarded)
	c.once.Do(c.forget)
	c.Conn.Close() // its goroutine ends with the next thing that it does
	return true
}

// refuse answers a connection that there is no room for, and closes it.
func (g *guard) refuse(conn net.Conn, why string) {
	if g.plain {
		conn.SetWriteDeadline(time.Now().Add(time.Second)) // an empty socket buffer takes it at once
		fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s\n", len(why)+1, why)
	}
	conn.Close()
}

// forget takes the connection off the counts. The caller holds guard.mu.
func (c *guarded) forget() {
	g := c.guard
	g.open--
	if c.place != nil {
		g.unknown.Remove(c.place)
		c.place = nil
	}
	if c.peer != nil && !c.peer.All {
		g.others--
		if g.byUser[c.peer.UID]--; g.byUser[c.peer.UID] == 0 {
			delete(g.byUser, c.peer.UID)
		}
	}
}

// known notes that the connection has shown whose it is: it keeps its place.
func (c *guarded) known() {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if c.place == nil {
		return
	}
	c.guard.unknown.Remove(c.place)
	c.place = nil
	c.Conn.SetReadDeadline(c.wanted) // the body of its request may take as long as others may
}

// Close closes the connection and makes room for another.
func (c *guarded) Close() error {
	c.guard.mu.Lock()
	c.once.Do(c.forget)
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline bounds how long the server waits. An unknown caller is not waited
// for as long as a known one.
func (c *guarded) SetReadDeadline(at time.Time) error {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	c.wanted = at
	if soon := time.Now().Add(c.guard.limits.Unknown); c.place != nil && at.After(soon) {
		at = soon
	}
	return c.Conn.SetReadDeadline(at)
}

// CloseWrite lets the server end a reply before it closes the connection.
func (c *guarded) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// identifyPeer is the caller at the other end of a Unix socket, nil on others. The
// kernel vouches for it: SO_PEERCRED is what the peer was when it connected.
func identifyPeer(conn net.Conn, of func(*net.UnixConn) (int, error)) *Caller {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	uid, err := of(local)
	if err != nil {
		return stranger
	}
	return peer(uid, os.Geteuid())
}

type guardedKey struct{}

// peerContext puts the connection's identity into its context, and the connection,
// which is told when a request has shown whose it is.
func peerContext(ctx context.Context, conn net.Conn) context.Context {
	out := conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(*guarded)
	if !ok {
		if p := identifyPeer(conn, identity.OfPeer); p != nil {
			return withCaller(ctx, p)
		}
		return ctx
	}
	c.header.out = out
	ctx = context.WithValue(ctx, headerKey{}, &c.header)
	if c.peer != nil {
		return withCaller(ctx, c.peer)
	}
	return context.WithValue(ctx, guardedKey{}, c)
}

// overTCP reports whether a request came by TCP.
func overTCP(ctx context.Context) bool {
	_, ok := ctx.Value(guardedKey{}).(*guarded)
	return ok
}

// recognise tells the connection of a request that it belongs to a known caller.
func recognise(ctx context.Context) {
	if c, ok := ctx.Value(guardedKey{}).(*guarded); ok {
		c.known()
	}
}
