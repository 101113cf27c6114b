package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/omis/host/owned"
)

// Limits for callers who send slowly or without end. Replies have no write deadline, because
// streams stay open for as long as they are read.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// Serve answers requests from all listeners until ctx ends. Running requests then have the
// time grace to finish.
func (s *Server) Serve(ctx context.Context, grace time.Duration, listeners ...net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ConnContext:       peerContext,
		ReadHeaderTimeout: s.times.header,
		ReadTimeout:       s.times.body,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	var err error
	running := len(listeners)
	select {
	case <-ctx.Done():
	case err = <-failed:
		running--
	}
	s.draining.Store(true)
	close(s.streams.ending)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		server.Close()
	}
	for range running {
		if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// ListenUnix opens the Unix socket. Every user may connect; the kernel identifies the user,
// who determines what the caller may do. No other user may be able to replace the socket in
// its directory. ListenUnix replaces the socket of a gateway that has ended.
func ListenUnix(path string) (net.Listener, error) {
	if err := owned.Shared(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("the socket's directory is not safe: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return newGuard(l, DefaultLimits(), true), nil
}

// removeStale removes the socket of a gateway that was killed.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("cannot listen on %s: a file is there that is no socket", path)
	}
	for deadline := time.Now().Add(lingers); ; time.Sleep(lingers / 20) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return err
			}
			return os.Remove(path)
		}
		conn.Close()
		if time.Now().After(deadline) {
			return fmt.Errorf("another gateway listens on %s; stop it, or choose another socket with --socket", path)
		}
	}
}

// lingers is how long the socket of a killed gateway may still accept connections: a child
// that was forked, and has not executed its program yet, has it open too.
const lingers = time.Second

// ListenTCP opens a TCP address. It requires TLS for addresses other than loopback, because
// others could read the token on the network.
func ListenTCP(addr string, secure *tls.Config) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return nil, fmt.Errorf("%s is no TCP address: write --socket %s for a Unix socket", addr, path)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: write it as HOST:PORT", addr)
	}
	if secure == nil && !isLoopback(host) {
		return nil, fmt.Errorf("cannot listen on %s without TLS: it is reachable from other machines; give a certificate, or listen on 127.0.0.1", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	guarded := newGuard(l, DefaultLimits(), secure == nil)
	if secure != nil {
		return tls.NewListener(guarded, secure), nil
	}
	return guarded, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
