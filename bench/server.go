package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sys/unix"
)

// server is a process that answers on a Unix socket.
type server struct {
	name    string
	socket  string
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	stopped sync.Once
}

// serverCPU is where servers run; the client stays off it.
const serverCPU = 0

// startPatience and stopPatience are for servers that hang.
const (
	startPatience = 30 * time.Second
	stopPatience  = 15 * time.Second
)

// start starts a server on one CPU and waits until it takes connections. What it
// says goes to a file: whatever a server leaves behind would keep a pipe open,
// and whoever reads ours waiting.
func start(ctx context.Context, dir, name, program string, args ...string) (*server, error) {
	said, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdout, cmd.Stderr = said, said
	// A Ctrl-C is for us alone: servers are stopped in order. If we are killed,
	// they follow.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{name: name, socket: socketOf(dir, name), command: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		cmd.Wait()
	}()
	if err = s.ready(ctx); err == nil {
		err = s.pin()
	}
	if err != nil {
		s.stop()
		text, _ := os.ReadFile(said.Name())
		return nil, fmt.Errorf("%s does not start: %w\n%s", name, err, text)
	}
	return s, nil
}

// socketOf is where the server of a name listens.
func socketOf(dir, name string) string { return filepath.Join(dir, name+".sock") }

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pin puts all threads of the server on one CPU; later ones inherit that.
func (s *server) pin() error {
	var set unix.CPUSet
	set.Set(serverCPU)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", s.command.Process.Pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("cannot pin %s: %w", s.name, err)
		}
	}
	return nil
}

// stop ends the server, kindly at first. It may be called again.
func (s *server) stop() {
	s.stopped.Do(func() {
		s.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(stopPatience):
			s.command.Process.Kill()
			<-s.ended
		}
	})
}

// cpuTime is what the server has used so far, by its CPU clock.
func (s *server) cpuTime() (time.Duration, error) {
	var t unix.Timespec
	// The clock of a process: CPUCLOCK_SCHED of ~pid (see clock_getcpuclockid(3)).
	clock := int32(^s.command.Process.Pid)<<3 | 2
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// resident is the server's memory in KiB.
func (s *server) resident() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.Fields(size)[0])
		}
	}
	return 0, fmt.Errorf("%s has no resident memory", s.name)
}

// bareCommand makes this program the bare server.
const bareCommand = "bare"

// serveBare is what the gateway is compared with: chi, the body read, a reply
// written.
func serveBare(socket, reply string) error {
	body, err := os.ReadFile(reply)
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	router := chi.NewRouter()
	router.Post("/mir", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	ctx, stop := signalled()
	defer stop()
	server := &http.Server{Handler: router}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
