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

// guard is a listener that limits its connections. On the Unix socket each user has a
// limit, because the kernel identifies the peer. On TCP a connection is unknown until a
// request on it has presented a token or a certificate. When there is no room for a new
// connection, guard closes the oldest unknown connection of the user with the most unknown connections.
// So neither a caller with a token nor another user is locked out, however many connections
// a user opens.
//
// One goroutine calls Accept; any goroutine may call the other methods.
type guard struct {
	net.Listener
	limits Limits
	plain  bool // a refusal can be written before the connection is closed
	peer   func(*net.UnixConn) (int, error)
	owner  func(*net.TCPConn) (int, error) // the user at the other end, on this machine

	mu      sync.Mutex
	open    int
	others  int
	byUser  map[int]int
	unknown map[int]*list.List // of *guarded by user, the oldest first
}

// elsewhere is the user of all connections from other machines.
const elsewhere = -1

func newGuard(l net.Listener, limits Limits, plain bool) *guard {
	return &guard{
		Listener: l, limits: limits, plain: plain, peer: identity.OfPeer, owner: identity.OfLoopback,
		byUser: make(map[int]int), unknown: make(map[int]*list.List),
	}
}

// guarded is a connection that a guard counts.
type guarded struct {
	net.Conn
	guard *guard
	peer  *Caller // nil if the connection does not identify it
	owner int     // the user of an unknown connection
	once  sync.Once

	header slowHeader

	// Guarded by guard.mu:
	place  *list.Element // in guard.unknown; nil if the caller is known
	wanted time.Time     // the read deadline that the server has set
}

// Accept returns the next connection for which there is room.
func (g *guard) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, why := g.admit(conn, identifyPeer(conn, g.peer), g.ownerOf(conn))
		if why == "" {
			return c, nil
		}
		g.refuse(conn, why)
	}
}

// ownerOf returns the user at the other end of a TCP connection.
func (g *guard) ownerOf(conn net.Conn) int {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return elsewhere
	}
	uid, err := g.owner(tcp)
	if err != nil {
		return elsewhere
	}
	return uid
}

// admit counts a connection, or returns why there is no room for it.
func (g *guard) admit(conn net.Conn, peer *Caller, owner int) (c *guarded, refusal string) {
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
	c = &guarded{Conn: conn, guard: g, peer: peer, owner: owner}
	switch {
	case peer == nil:
		if g.unknown[owner] == nil {
			g.unknown[owner] = list.New()
		}
		c.place = g.unknown[owner].PushBack(c)
	case !peer.All:
		g.others++
		g.byUser[peer.UID]++
	}
	return c, ""
}

// evict closes the oldest unknown connection of the user with the most unknown connections. It reports
// whether there was one. The caller holds mu.
func (g *guard) evict() bool {
	var most *list.List
	for _, of := range g.unknown {
		if most == nil || of.Len() > most.Len() {
			most = of
		}
	}
	if most == nil {
		return false
	}
	c := most.Front().Value.(*guarded)
	c.once.Do(c.forget)
	c.Conn.Close() // the goroutine that serves it ends with its next read or write
	return true
}

// identified takes the connection off the unknown ones. The caller holds guard.mu.
func (c *guarded) identified() {
	of := c.guard.unknown[c.owner]
	of.Remove(c.place)
	c.place = nil
	if of.Len() == 0 {
		delete(c.guard.unknown, c.owner)
	}
}

// refuse answers a connection for which there is no room, and closes it.
func (g *guard) refuse(conn net.Conn, why string) {
	if g.plain {
		conn.SetWriteDeadline(time.Now().Add(time.Second)) // an empty socket buffer takes it at once
		fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s\n", len(why)+1, why)
	}
	conn.Close()
}

// forget removes the connection from the counts. The caller holds guard.mu.
func (c *guarded) forget() {
	g := c.guard
	g.open--
	if c.place != nil {
		c.identified()
	}
	if c.peer != nil && !c.peer.All {
		g.others--
		if g.byUser[c.peer.UID]--; g.byUser[c.peer.UID] == 0 {
			delete(g.byUser, c.peer.UID)
		}
	}
}

// known records that the caller is known, so that evict spares the connection.
func (c *guarded) known() {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if c.place == nil {
		return
	}
	c.identified()
	c.Conn.SetReadDeadline(c.wanted) // the body of its request may take as long as those of others
}

// Close closes the connection and makes room for another.
func (c *guarded) Close() error {
	c.guard.mu.Lock()
	c.once.Do(c.forget)
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline limits how long the server waits for the caller: less long for an unknown
// one.
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

// identifyPeer returns the caller at the other end of a Unix socket, nil for other
// connections. The kernel reports the user that the peer had when it connected.
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

// peerContext adds the identity of the peer to the context of a connection, and the
// connection itself, for recognise.
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

// recognise records that the connection of a request belongs to a known caller.
func recognise(ctx context.Context) {
	if c, ok := ctx.Value(guardedKey{}).(*guarded); ok {
		c.known()
	}
}
