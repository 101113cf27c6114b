//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"mirador/examples/child"

	"golang.org/x/sys/unix"
)

// away is a server to which the gateway may deliver, and that does not answer.
const away = "http://127.0.0.1:1/in"

// gateway is the mirador under test.
type gateway struct {
	child  *child.Child
	socket string
	log    *os.File
	files  string // directory of the files to which it may deliver
}

func startGateway(program, dir string) (*gateway, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	g := &gateway{socket: filepath.Join(dir, "socket"), log: log, files: filepath.Join(dir, "files")}
	if err := os.Mkdir(g.files, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", "--calibrate", "when-needed", "--listen", "off", "--socket", g.socket, "--data", filepath.Join(dir, "data"), "--deliver", "file://"+g.files, "--deliver", away)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only this process, which ends the gateway
	if g.child, err = child.Start(cmd); err != nil {
		return nil, err
	}
	if line, err := g.child.Line(patience); !strings.HasPrefix(line, "ready") {
		g.child.Kill()
		return nil, fmt.Errorf("the gateway does not start: %q, %v\n%s", line, err, g.logged())
	}
	return g, nil
}

// logged returns the end of the gateway's log.
func (g *gateway) logged() string {
	const most = 4000
	text, err := os.ReadFile(g.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// resident returns the gateway's resident memory in MB.
func (g *gateway) resident() (mb int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.child.PID))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &mb); err != nil {
		return 0, errors.New("the gateway has no memory: it has ended")
	}
	return mb >> 10, nil
}

// end ends the gateway by SIGTERM.
func (g *gateway) end() error {
	defer g.log.Close()
	late := time.AfterFunc(patience, func() { g.child.Cmd.Process.Kill() })
	defer late.Stop()
	g.child.Cmd.Process.Signal(syscall.SIGTERM)
	if err := g.child.Wait(); err != nil {
		return fmt.Errorf("the gateway ended with %w\n%s", err, g.logged())
	}
	return nil
}

// caller sends requests as one user. It may be used by several goroutines.
type caller struct {
	http *http.Client
}

// patience limits the time for an answer, and for the gateway's start and end.
const patience = 2 * time.Minute

func (g *gateway) caller(uid uint32) *caller {
	dial := func(context.Context, string, string) (net.Conn, error) { return dialAs(uid, g.socket) }
	return &caller{&http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16}}}
}

// dialAs connects to a Unix socket as a user: the peer sees the uid of the thread that connects.
// The thread ends afterwards.
func dialAs(uid uint32, socket string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // without unlock, the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			done <- result{nil, errno}
			return
		}
		conn, err := net.Dial("unix", socket)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// answer is the gateway's answer.
type answer struct {
	status int
	body   string
	took   time.Duration
}

func (c *caller) send(ctx context.Context, method, path, kind string, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://mirador"+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", kind)
	begin := time.Now()
	reply, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return answer{reply.StatusCode, string(text), time.Since(begin)}, err
}

// must is send for a request that must succeed.
func (c *caller) must(ctx context.Context, method, path, kind, body string) (string, error) {
	a, err := c.send(ctx, method, path, kind, []byte(body))
	if err != nil {
		return "", err
	}
	if a.status >= http.StatusBadRequest {
		return "", fmt.Errorf("%s %s %.200s: status %d: %.500s", method, path, body, a.status, a.body)
	}
	return a.body, nil
}

// document sends a MIR document, which must succeed, to an application.
func (c *caller) document(ctx context.Context, app, format string, args ...any) (string, error) {
	return c.must(ctx, http.MethodPost, "/apps/"+app+"/mir", "application/xml", fmt.Sprintf(format, args...))
}

// attach creates an application with a process.
func (c *caller) attach(ctx context.Context, app string, pid int) error {
	_, err := c.must(ctx, http.MethodPost, "/apps", "application/json", fmt.Sprintf(`{"name":%q,"attach":[%d]}`, app, pid))
	return err
}
