package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func signalled() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// stayOff keeps this process off the servers' CPU, if there is another one.
func stayOff() error {
	if runtime.NumCPU() < 2 {
		return nil
	}
	var set unix.CPUSet
	for cpu := range runtime.NumCPU() {
		if cpu != serverCPU {
			set.Set(cpu)
		}
	}
	return unix.SchedSetaffinity(0, &set)
}

// connections is the number of open connections, enough to keep a server busy.
const connections = 4

// patience ends a benchmark when a server hangs: a request takes a fraction of a
// millisecond, and the deadline is set anew after every patient requests.
const (
	patience = 30 * time.Second
	patient  = 1000
)

// load sends n requests over several persistent connections.
func load(ctx context.Context, s *server, request []byte, n int) error {
	failed := make([]error, connections)
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() { failed[i] = loadOne(ctx, s, request, n/connections) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errors.Join(failed...)
}

func loadOne(ctx context.Context, s *server, request []byte, n int) error {
	l, err := call(ctx, s)
	if err != nil {
		return err
	}
	defer l.hangUp()
	for i := range n {
		if i%patient == 0 {
			if err := l.bePatient(); err != nil {
				return err
			}
		}
		if err := l.ask(request); err != nil {
			return err
		}
	}
	return nil
}

// inTurn sends requests over one connection, each after the reply to the one before.
func inTurn(ctx context.Context, s *server, requests []string) error {
	l, err := call(ctx, s)
	if err != nil {
		return err
	}
	defer l.hangUp()
	for _, request := range requests {
		if err := l.bePatient(); err != nil {
			return err
		}
		if err := l.ask([]byte(request)); err != nil {
			return err
		}
	}
	return nil
}

// line is a persistent connection to a server.
type line struct {
	server *server
	conn   net.Conn
	in     *bufio.Reader
	spared func() bool // from now on, the end of the context does not close the connection; false if it has
}

// call connects to a server; the end of the context closes the connection.
func call(ctx context.Context, s *server) (*line, error) {
	conn, err := net.DialTimeout("unix", s.socket, patience)
	if err != nil {
		return nil, err
	}
	return &line{s, conn, bufio.NewReader(conn), context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

func (l *line) hangUp() {
	l.spared()
	l.conn.Close()
}

// bePatient sets the deadline anew.
func (l *line) bePatient() error { return l.conn.SetDeadline(time.Now().Add(patience)) }

// ask sends a request and waits for the reply.
func (l *line) ask(request []byte) error {
	if _, err := l.conn.Write(request); err != nil {
		return err
	}
	if _, err := readReply(l.in); err != nil {
		return fmt.Errorf("%s: %w", l.server.name, err)
	}
	return nil
}

// readReply reads a reply of status 200 with as little work as possible.
func readReply(in *bufio.Reader) ([]byte, error) {
	status, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(status) < 12 || string(status[9:12]) != "200" {
		return nil, fmt.Errorf("answered %q", status)
	}
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		const name = "Content-Length: "
		if len(line) > len(name) && string(line[:len(name)]) == name {
			if length, err = strconv.Atoi(string(line[len(name) : len(line)-2])); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errors.New("a reply without a length")
	}
	body, err := in.Peek(length)
	if err == nil {
		_, err = in.Discard(length)
	}
	return body, err
}

// post sends a request that is not measured.
func post(ctx context.Context, socket, path, contentType, body string) ([]byte, error) {
	return send(ctx, socket, http.MethodPost, path, contentType, body)
}

func remove(ctx context.Context, socket, path string) error {
	_, err := send(ctx, socket, http.MethodDelete, path, "text/plain", "")
	return err
}

func send(ctx context.Context, socket, method, path, contentType, body string) ([]byte, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://mirador"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", resp.Status, reply)
	}
	return reply, err
}
